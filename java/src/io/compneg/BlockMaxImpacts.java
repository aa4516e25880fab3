package io.compneg;

import java.io.IOException;
import org.apache.lucene.index.LeafReader;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.search.Scorer;

/**
 * Upper bounds of a term's impacts in ranges of a segment's documents. Ranges must come in ascending order.
 *
 * <p>The bounds are Lucene's own block maxima. Where none of their levels covers the range, it is halved. The last
 * block of a term has no maximum, so it is read.
 */
final class BlockMaxImpacts {
  /** Lucene answers with at least this where it has no maximum. */
  private static final float UNKNOWN = Integer.MAX_VALUE;

  /** From here on a float may be below the whole number that it stands for. */
  private static final float LARGEST_EXACT = 1 << 24;

  private final Scorer blocks;
  private final LeafReader segment;
  private final Term term;
  private int lastBlockStart = Integer.MAX_VALUE;
  private int lastBlockMax;

  /**
   * Bounds the impacts of one term.
   *
   * @param blocks a scorer of the term whose score is the impact
   */
  BlockMaxImpacts(Scorer blocks, LeafReader segment, Term term) {
    this.blocks = blocks;
    this.segment = segment;
    this.term = term;
  }

  /** No impact of the documents {@code [from, to)} is larger. */
  int upperBound(int from, int to) throws IOException {
    if (from >= lastBlockStart) return lastBlockMax;
    if (from == 0 && to > 1) return Math.max(impactOfFirst(), upperBound(1, to));
    int blockEnd = blocks.advanceShallow(from);
    float bound = blocks.getMaxScore(to - 1);
    if (bound < UNKNOWN) return roundUp(bound);
    if (blockEnd >= to - 1) return readLastBlock(from);
    int middle = Math.max(blockEnd + 1, (from + to) >>> 1);
    return Math.max(upperBound(from, middle), upperBound(middle, to));
  }

  /** The impact of document 0. Lucene has no maximum at all before it has left that document. */
  private int impactOfFirst() throws IOException {
    PostingsEnum postings = segment.postings(term, PostingsEnum.FREQS);
    return postings.nextDoc() == 0 ? postings.freq() : 0;
  }

  private int readLastBlock(int start) throws IOException {
    PostingsEnum postings = segment.postings(term, PostingsEnum.FREQS);
    for (int doc = postings.advance(start); doc != DocIdSetIterator.NO_MORE_DOCS; doc = postings.nextDoc()) {
      lastBlockMax = Math.max(lastBlockMax, postings.freq());
    }
    lastBlockStart = start;
    return lastBlockMax;
  }

  private static int roundUp(float bound) {
    return (int) (bound < LARGEST_EXACT ? bound : Math.nextUp(bound));
  }
}
