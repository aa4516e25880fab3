package io.compneg.search;

import java.io.IOException;
import org.apache.lucene.index.Impacts;
import org.apache.lucene.index.ImpactsEnum;
import org.apache.lucene.search.DocIdSetIterator;

/**
 * Upper bounds of a term's impacts in ranges of a segment's documents. Ranges must come in ascending order.
 *
 * <p>The bounds are Lucene's own block maxima. Where none of their levels covers the range, it is halved. The last
 * block of a term has no maximum, so it is read.
 */
final class BlockMaxImpacts {
  /** Lucene answers with this where it has no maximum. */
  private static final int UNKNOWN = Integer.MAX_VALUE;

  private final ImpactsEnum blocks;
  private int lastBlockStart = Integer.MAX_VALUE;
  private int lastBlockMax;

  /**
   * Bounds the impacts of one term.
   *
   * @param blocks before their first document, and for this use alone
   */
  BlockMaxImpacts(ImpactsEnum blocks) {
    this.blocks = blocks;
  }

  /** No impact of the documents {@code [from, to)} is larger. */
  int upperBound(int from, int to) throws IOException {
    if (from >= lastBlockStart) return lastBlockMax;
    blocks.advanceShallow(Math.max(1, from)); // not to 0, where Lucene 9 has no maxima yet: 1 is in the same block
    Impacts maxima = blocks.getImpacts();
    int level = 0;
    while (level < maxima.numLevels() && maxima.getDocIdUpTo(level) < to - 1) level++;
    int bound = level == maxima.numLevels() ? UNKNOWN : LuceneLine.current().largestFrequency(maxima, level);
    if (bound != UNKNOWN) return bound;
    int blockEnd = maxima.getDocIdUpTo(0);
    if (blockEnd >= to - 1) return readLastBlock(from);
    int middle = Math.max(blockEnd + 1, (from + to) >>> 1);
    return Math.max(upperBound(from, middle), upperBound(middle, to));
  }

  private int readLastBlock(int start) throws IOException {
    for (int doc = blocks.advance(start); doc != DocIdSetIterator.NO_MORE_DOCS; doc = blocks.nextDoc()) {
      lastBlockMax = Math.max(lastBlockMax, blocks.freq());
    }
    lastBlockStart = start;
    return lastBlockMax;
  }
}
