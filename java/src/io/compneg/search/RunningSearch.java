package io.compneg.search;

import io.compneg.blocks.BlockMaxima;
import io.compneg.blocks.DocumentWindow;
import io.compneg.index.DocumentFilter;
import java.io.IOException;
import java.util.Iterator;
import java.util.function.Consumer;
import org.apache.lucene.index.IndexReader;
import org.apache.lucene.index.LeafReaderContext;

/** The search of one query among some documents. It can be left between two windows, and taken up again. */
final class RunningSearch<C extends HitCollector> {
  private final String field;
  private final BlockMaxima maxima; // null for none
  private final int fromDoc;
  private final int toDoc;
  private final C collector;
  private final WindowScorer scorer;
  private final Iterator<LeafReaderContext> segments;
  private final WindowScorer.Statistics work = new WindowScorer.Statistics();
  private final Consumer<WindowScorer.Statistics> counter;
  private boolean inSegment;

  /**
   * Begins a search in the documents {@code [fromDoc, toDoc)} of an index.
   *
   * @param maxima the block maxima of one segment; null for none
   * @param filter the documents that may be found; null for all
   * @param counter takes the work of the whole search at its end
   */
  RunningSearch(IndexReader reader, int fromDoc, int toDoc, String field, BlockMaxima maxima, ScoringTree tree,
      DocumentFilter filter, C collector, Consumer<WindowScorer.Statistics> counter) {
    this.field = field;
    this.maxima = maxima;
    this.fromDoc = fromDoc;
    this.toDoc = toDoc;
    this.collector = collector;
    this.scorer = new WindowScorer(new QueryPlan(tree), filter, collector, work);
    this.counter = counter;
    this.segments = reader.leaves().stream().filter(this::overlaps).iterator();
  }

  /**
   * Goes on searching.
   *
   * @param deadline a value of {@link System#nanoTime}; no window but the first begins after it
   * @return the hits; null when it has to be taken up again
   */
  C proceed(long deadline) throws IOException {
    while (inSegment || segments.hasNext()) {
      inSegment = (inSegment || enter(segments.next())) && scorer.scoreNextWindow();
      if (System.nanoTime() - deadline >= 0) return null;
    }
    counter.accept(work);
    return collector;
  }

  private boolean overlaps(LeafReaderContext segment) {
    return from(segment) < to(segment);
  }

  private boolean enter(LeafReaderContext segment) throws IOException {
    return scorer.enterSegment(segment, from(segment), to(segment), field, maxima);
  }

  private int from(LeafReaderContext segment) {
    return Math.max(0, nextBlock(fromDoc - segment.docBase));
  }

  private int to(LeafReaderContext segment) {
    return Math.min(segment.reader().maxDoc(), nextBlock(toDoc - segment.docBase));
  }

  /** The first document of a block that is not below the given one: neighbouring ranges part a segment there. */
  private static int nextBlock(int doc) {
    return Math.ceilDiv(doc, DocumentWindow.BLOCK) * DocumentWindow.BLOCK;
  }
}
