package io.compneg;

import java.io.IOException;
import java.util.Iterator;
import java.util.function.Consumer;
import org.apache.lucene.index.IndexReader;
import org.apache.lucene.index.LeafReaderContext;

/** The search of one query. It can be left between two windows, and taken up again. */
final class RunningSearch {
  private final QueryPlan plan;
  private final String field;
  private final BlockMaxima maxima; // null for none
  private final TopHitsCollector collector;
  private final WindowScorer scorer;
  private final Iterator<LeafReaderContext> segments;
  private final WindowScorer.Statistics work = new WindowScorer.Statistics();
  private final Consumer<WindowScorer.Statistics> counter;
  private boolean inSegment;

  /**
   * Begins a search.
   *
   * @param maxima the block maxima of one segment; null for none
   * @param filter the documents that may be found; null for all
   * @param counter takes the work of the whole search at its end
   */
  RunningSearch(IndexReader reader, String field, BlockMaxima maxima, ScoringTree tree, DocumentFilter filter,
      TopHitsCollector collector, Consumer<WindowScorer.Statistics> counter) {
    this.plan = new QueryPlan(tree);
    this.field = field;
    this.maxima = maxima;
    this.collector = collector;
    this.scorer = new WindowScorer(plan, filter, collector, work);
    this.counter = counter;
    this.segments = reader.leaves().iterator();
  }

  /**
   * Goes on searching.
   *
   * @param deadline a value of {@link System#nanoTime}; no window but the first begins after it
   * @return the hits; null when it has to be taken up again
   */
  TopHitsCollector.Ranking proceed(long deadline) throws IOException {
    while (inSegment || segments.hasNext()) {
      inSegment = (inSegment || scorer.enterSegment(segments.next(), field, maxima)) && scorer.scoreNextWindow();
      if (System.nanoTime() - deadline >= 0) return null;
    }
    counter.accept(work);
    return collector.ranking();
  }
}
