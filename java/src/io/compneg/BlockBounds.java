package io.compneg;

import io.compneg.QueryPlan.Alternative;
import io.compneg.QueryPlan.Contribution;
import java.util.Arrays;
import java.util.List;
import org.apache.lucene.util.FixedBitSet;
import org.apache.lucene.util.NumericUtils;

/**
 * The upper bounds of blocks of a segment, and the order in which the blocks are scored: first the few with the
 * highest bounds, which give a high minimum competitive score; then those of the others whose bounds reach it.
 *
 * <p>Where the query is the best of some alternatives, the others come in several parts: for each alternative the
 * blocks that are competitive by it alone, so that no other term need be read; at last the blocks that are left.
 */
final class BlockBounds {
  /** One block in so many is among the first. */
  private static final int FIRST_SHARE = 64;

  /** The most documents of a window: the bounds of its terms are those of its best block. */
  private static final int MOST_DOCUMENTS = 2048;

  /** What stands for the first blocks and for those that are left, in place of an alternative. */
  static final int ALL = -1;

  private final int firstBlock;

  /** Of block firstBlock + i, rounded up; 0 for a block that is done, or in which nothing can be found. */
  private final float[] upperBounds;

  /** The alternative with the highest bound in each block, and the highest bound of another; null for no choice. */
  private final byte[] best;

  private final float[] secondBounds;
  private final int alternatives;

  private final int endDoc;
  private final int[] first; // places in the bounds, in ascending order
  private int part = -1; // −1 for the first blocks, then the alternatives, then what is left
  private int next; // place in first, or in the bounds

  /**
   * Bounds the blocks of the documents {@code [from, to)}.
   *
   * @param from a multiple of {@link DocumentWindow#BLOCK}
   * @param cursors of the terms that may raise a score, with block maxima
   * @param allowed the documents that may be found; null for all
   * @param accumulators room for the sums
   * @param nothing a 0 for each accumulator
   */
  BlockBounds(QueryPlan plan, TermCursor[] cursors, int from, int to, FixedBitSet allowed, double[][] accumulators,
      double[] nothing) {
    firstBlock = from / DocumentWindow.BLOCK;
    endDoc = to;
    upperBounds = new float[TermMaxima.blocks(to) - firstBlock];
    alternatives = plan.alternatives.size();
    best = alternatives > 0 ? new byte[upperBounds.length] : null;
    secondBounds = alternatives > 0 ? new float[upperBounds.length] : null;
    for (int start = 0; start < upperBounds.length; start += plan.window) {
      int count = Math.min(plan.window, upperBounds.length - start);
      for (double[] accumulator : accumulators) Arrays.fill(accumulator, 0, count, 0);
      for (TermCursor cursor : cursors) add(cursor, firstBlock + start, count, accumulators);
      plan.root.boundWindow(accumulators, nothing, count);
      for (int i = 0; i < count; i++) {
        double bound = plan.root.upperBounds[i];
        if (bound > 0 && hasAny(allowed, start + i)) upperBounds[start + i] = Math.nextUp((float) bound);
      }
      if (alternatives > 0) rank(plan.alternatives, start, count);
    }
    first = highest(upperBounds.length / FIRST_SHARE);
  }

  private static void add(TermCursor cursor, int from, int count, double[][] accumulators) {
    TermMaxima maxima = cursor.blockMaxima;
    double[] table = new double[TermMaxima.VALUES];
    for (Contribution contribution : cursor.contributions) {
      if (!contribution.positive) continue;
      double[] sums = accumulators[contribution.accumulator];
      for (int value = 0; value < table.length; value++) table[value] = contribution.of(maxima.impact(value));
      for (int i = 0; i < count; i++) sums[i] += table[maxima.value(from + i)];
    }
  }

  /** Finds the best alternative and the second bound of blocks whose bounds the alternatives have. */
  private void rank(List<Alternative> ranked, int start, int count) {
    for (int i = 0; i < count; i++) {
      double highest = 0;
      double second = 0;
      for (int n = 0; n < alternatives; n++) {
        double bound = ranked.get(n).node().upperBounds[i];
        second = Math.max(second, Math.min(bound, highest));
        if (bound > highest) {
          highest = bound;
          best[start + i] = (byte) n;
        }
      }
      if (second > 0) secondBounds[start + i] = Math.nextUp((float) second);
    }
  }

  private boolean hasAny(FixedBitSet allowed, int place) {
    return allowed == null || allowed.nextSetBit(start(place)) < end(place);
  }

  private int start(int place) {
    return (firstBlock + place) * DocumentWindow.BLOCK;
  }

  private int end(int place) {
    return Math.min(endDoc, start(place) + DocumentWindow.BLOCK);
  }

  private int[] highest(int count) {
    long[] blocks = new long[upperBounds.length]; // the bound above the number
    for (int i = 0; i < blocks.length; i++)
      blocks[i] = (long) NumericUtils.floatToSortableInt(upperBounds[i]) << 32 | i;
    if (count > 0) LargestFirst.select(blocks, blocks.length, count);
    return Arrays.stream(blocks, 0, count).mapToInt(block -> (int) block).sorted().toArray();
  }

  /**
   * Makes the window the next blocks of the current part, as many as it holds.
   *
   * @param nonCompetitive the largest upper bound that is not competitive
   * @return false when no more come in this part
   */
  boolean fill(DocumentWindow window, double nonCompetitive) {
    window.clear();
    int alternative = alternative();
    int end = atFirst() ? first.length : upperBounds.length;
    for (; next < end && window.size < MOST_DOCUMENTS && !window.isFull(); next++) {
      int place = atFirst() ? first[next] : next;
      if (upperBounds[place] <= nonCompetitive) continue;
      if (alternative != ALL && (best[place] != alternative || secondBounds[place] > nonCompetitive)) continue;
      window.addBlock(start(place), end(place));
      upperBounds[place] = 0;
    }
    return window.blocks > 0;
  }

  private boolean atFirst() {
    return part < 0;
  }

  /** Begins the next part, which goes through the postings anew; false when there is none. */
  boolean nextPart() {
    next = 0;
    return part++ < alternatives;
  }

  /** The alternative by which alone the blocks of this part are competitive; {@link #ALL} when that is not known. */
  int alternative() {
    return atFirst() || part >= alternatives ? ALL : part;
  }
}
