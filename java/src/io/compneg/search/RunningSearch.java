package io.compneg.search;

import io.compneg.blocks.BlockMaxima;
import io.compneg.blocks.DocumentWindow;
import io.compneg.index.DocumentFilter;
import java.io.IOException;
import java.util.Iterator;
import java.util.function.Consumer;
import org.apache.lucene.index.IndexReader;
import org.apache.lucene.index.LeafReaderContext;

/** The search of one query by its terms. It can be left between two windows. */
final class RunningSearch<C extends HitCollector> implements Running<C> {
  private final String field;
  private final BlockMaxima maxima; // null for none
  private final int fromDoc;
  private final int toDoc;
  private final C collector;
  private final QueryPlan plan;
  private final DocumentFilter filter; // null for none
  private final WindowScorer scorer;
  private final AscendingSearch ascending;
  private final Iterator<LeafReaderContext> segments;
  private final WindowScorer.Statistics work = new WindowScorer.Statistics();
  private final Consumer<WindowScorer.Statistics> counter;
  private SegmentSearch windows; // of the segment; null between two segments

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
    this.plan = new QueryPlan(tree);
    this.filter = filter;
    this.scorer = new WindowScorer(plan, collector, work);
    this.ascending = new AscendingSearch(scorer, plan.window);
    this.counter = counter;
    this.segments = reader.leaves().stream().filter(this::overlaps).iterator();
  }

  @Override
  public C proceed(long deadline) throws IOException {
    while (windows != null || segments.hasNext()) {
      if (windows == null) windows = enter(segments.next());
      if (windows != null && !windows.scoreNext()) windows = null;
      if (System.nanoTime() - deadline >= 0) return null;
    }
    counter.accept(work);
    return collector;
  }

  private boolean overlaps(LeafReaderContext segment) {
    return from(segment) < to(segment);
  }

  /** Begins a segment; null when none of its documents can match. */
  private SegmentSearch enter(LeafReaderContext leaf) throws IOException {
    QuerySegment segment = new QuerySegment(plan, leaf, field, filter, maxima, collector.k());
    if (!scorer.enter(segment)) return null;
    if (!segment.bounded) return ascending.begin(from(leaf), to(leaf));
    ascending.grow(); // for the next segment
    return new BlockSearch(scorer, scorer.blockBounds(from(leaf), to(leaf)));
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
