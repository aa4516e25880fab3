package io.compneg;

import java.io.IOException;
import org.apache.lucene.index.LeafReader;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.search.Scorer;

/**
 * The largest impact of a term in any range of a segment's documents, ranges in ascending order.
 *
 * <p>The bounds are Lucene's own block maxima. Where none of their levels covers the range, it is halved; the
 * last block of a term, which has no maximum, is read.
 */
final class ImpactBounds {
  /** Lucene answers with at least this where it has no maximum. */
  private static final float UNKNOWN = Integer.MAX_VALUE;

  /** From here on a float may be below the whole number that it stands for. */
  private static final float LARGEST_EXACT = 1 << 24;

  private final Scorer blocks;
  private final LeafReader segment;
  private final Term term;
  private int tailStart = Integer.MAX_VALUE;
  private int tailImpact;

  /**
   * @param blocks a scorer of the term whose score is the impact
   */
  ImpactBounds(Scorer blocks, LeafReader segment, Term term) {
    this.blocks = blocks;
    this.segment = segment;
    this.term = term;
  }

  /** A bound for the documents {@code [from, to)}. */
  int largest(int from, int to) throws IOException {
    if (from >= tailStart) return tailImpact;
    if (from == 0 && to > 1) return Math.max(impactOfFirst(), largest(1, to));
    int blockEnd = blocks.advanceShallow(from);
    float bound = blocks.getMaxScore(to - 1);
    if (bound < UNKNOWN) return roundUp(bound);
    if (blockEnd >= to - 1) return readTail(from);
    int middle = Math.max(blockEnd + 1, (from + to) >>> 1);
    return Math.max(largest(from, middle), largest(middle, to));
  }

  /** The impact of document 0. Lucene has no maximum at all before it has left that document. */
  private int impactOfFirst() throws IOException {
    PostingsEnum postings = segment.postings(term, PostingsEnum.FREQS);
    return postings.nextDoc() == 0 ? postings.freq() : 0;
  }

  private int readTail(int start) throws IOException {
    PostingsEnum tail = segment.postings(term, PostingsEnum.FREQS);
    for (int doc = tail.advance(start); doc != DocIdSetIterator.NO_MORE_DOCS; doc = tail.nextDoc()) {
      tailImpact = Math.max(tailImpact, tail.freq());
    }
    tailStart = start;
    return tailImpact;
  }

  private static int roundUp(float bound) {
    return (int) (bound < LARGEST_EXACT ? bound : Math.nextUp(bound));
  }
}
