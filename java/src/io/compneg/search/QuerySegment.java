package io.compneg.search;

import io.compneg.blocks.BlockMaxima;
import io.compneg.blocks.TermMaxima;
import io.compneg.index.DocumentFilter;
import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.util.Bits;
import org.apache.lucene.util.FixedBitSet;

/** What a query needs of a segment: the terms that the segment has, and the documents that may be found. */
final class QuerySegment {
  /** Where a smaller share of documents is allowed, all terms are looked up for these alone; 1/8 costs more. */
  private static final double SPARSE = 1 / 32.0;

  /** Block maxima pay if so many documents may be found for each hit. With fewer, nearly all blocks are competitive. */
  private static final int DOCUMENTS_PER_HIT = 1 << 10;

  /** The most bytes that the block maxima and the bounds of a query take; several queries are searched at once. */
  private static final long MOST_BLOCK_BYTES = Math.min(1 << 26, Runtime.getRuntime().maxMemory() / 64);

  /** What the bounds of a block take, beside the maxima of the terms. */
  private static final long BOUND_BYTES = 17;

  /** What a term may take, beside its maxima: a table of contributions. */
  private static final long TABLE_BYTES = TermMaxima.VALUES * Double.BYTES;

  final LeafReaderContext leaf;
  final Bits live; // documents; null for all
  final FixedBitSet allowed; // null for all
  final boolean sparse; // whether few are allowed
  final boolean bounded; // whether all terms that may raise a score have block maxima
  final Map<Integer, FixedBitSet> named = new HashMap<>(); // see QueryPlan#named
  final List<TermCursor> cursors;

  /**
   * Opens the terms of a query in a segment.
   *
   * @param field the field whose term frequencies are the impacts
   * @param filter the documents that may be found; null for all
   * @param maxima the block maxima of a segment, maybe of another one; null for none
   * @param k how many hits are of use
   */
  QuerySegment(QueryPlan plan, LeafReaderContext leaf, String field, DocumentFilter filter, BlockMaxima maxima, int k)
      throws IOException {
    this.leaf = leaf;
    live = leaf.reader().getLiveDocs();
    allowed = filter == null ? null : filter.in(leaf);
    sparse = allowed != null && allowed.cardinality() < SPARSE * allowed.length();
    for (var part : plan.named.entrySet()) named.put(part.getKey(), part.getValue().in(leaf));
    boolean known = maxima != null && maxima.isOf(leaf);
    bounded = known && payOff(plan, maxima, k);
    cursors = TermCursor.openAll(plan, field, leaf.reader(), known ? maxima.forThread() : null, bounded);
  }

  private boolean payOff(QueryPlan plan, BlockMaxima maxima, int k) {
    int documents = allowed == null ? leaf.reader().maxDoc() : allowed.cardinality();
    long bytes = plan.terms.size() * (maxima.blocks + TABLE_BYTES) + BOUND_BYTES * maxima.blocks;
    return documents / DOCUMENTS_PER_HIT >= k && bytes <= MOST_BLOCK_BYTES;
  }

  /** Whether most of the time of reading goes to terms that are read by vector instructions. */
  boolean readsFast() {
    double more = 0;
    for (TermCursor cursor : cursors) more += cursor.readsFast ? cursor.readingCost : -cursor.readingCost;
    return more > 0;
  }
}
