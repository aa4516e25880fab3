package io.compneg.search;

import io.compneg.blocks.Accumulators;
import io.compneg.blocks.Contribution;
import io.compneg.blocks.DocumentWindow;
import io.compneg.blocks.TermMaxima;
import io.compneg.search.QueryPlan.Alternative;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.lucene.util.FixedBitSet;
import org.apache.lucene.util.NumericUtils;

/**
 * The upper bounds of blocks of a segment, and the order in which the blocks are scored: first the few with the
 * highest bounds, which give a high minimum competitive score; then those of the others whose bounds reach it, or all
 * others, in a row, where that is faster.
 *
 * <p>Where the query is the best of some alternatives, the others come in several parts: for each alternative the
 * blocks that are competitive by it alone, so that no other term need be read; at last the blocks that are left.
 */
final class BlockBounds {
  /** One block in so many is among the first. */
  private static final int FIRST_SHARE = 64;

  /** The same where documents in a row are read by vector instructions, several times as fast as single blocks. */
  private static final int FIRST_SHARE_FAST = 1 << 10;

  /** The most documents of a window: a larger one would have looser bounds, since its best block gives them. */
  private static final int MOST_DOCUMENTS = 2048;

  /** If a larger share of the blocks is competitive and documents in a row are read fast, all blocks are scored. */
  private static final double IN_A_ROW = 0.25;

  private final int firstBlock;

  /** Of block firstBlock + i, rounded up; 0 for a block that is done, or in which nothing can be found. */
  private final float[] upperBounds;

  private final List<Alternative> alternatives; // none where the query is no choice

  /** The place of the alternative with the highest bound in each block, and the highest bound of another. */
  private final byte[] bestAlternatives;

  private final float[] secondBounds;

  private final boolean readsFast; // by vector instructions, if documents stand in a row
  private final int endDoc;
  private final int[] first; // places in the bounds, in ascending order
  private int part; // 0 for the first blocks, then one for each alternative, and one for what is left
  private int next; // place in first, or in the bounds
  private boolean begunPart;
  private boolean inARow; // whether all blocks that are left are scored
  private int nextAllowed = -1; // document

  /**
   * Bounds the blocks of the documents {@code [from, to)}.
   *
   * @param from a multiple of {@link DocumentWindow#BLOCK}
   * @param segment whose terms that may raise a score have block maxima
   * @param accumulators room for the sums
   */
  BlockBounds(QueryPlan plan, QuerySegment segment, int from, int to, Accumulators accumulators) {
    readsFast = segment.readsFast();
    firstBlock = from / DocumentWindow.BLOCK;
    endDoc = to;
    upperBounds = new float[TermMaxima.blocks(to) - firstBlock];
    alternatives = plan.alternatives;
    bestAlternatives = new byte[alternatives.isEmpty() ? 0 : upperBounds.length];
    secondBounds = new float[bestAlternatives.length];
    List<Bound> bounds = new ArrayList<>();
    for (TermCursor cursor : segment.cursors) {
      for (Contribution contribution : cursor.contributions) {
        if (contribution.positive) bounds.add(new Bound(cursor.blockMaxima, contribution, accumulators));
      }
    }
    for (int start = 0; start < upperBounds.length; start += plan.window) {
      int count = Math.min(plan.window, upperBounds.length - start);
      accumulators.clear(count);
      for (Bound bound : bounds) bound.add(firstBlock + start, count);
      plan.root.boundWindow(accumulators.sums, accumulators.nothing, count);
      for (int i = 0; i < count; i++) {
        double bound = plan.root.upperBounds[i];
        if (bound > 0 && hasAny(segment.allowed, start + i)) upperBounds[start + i] = Math.nextUp((float) bound);
      }
      if (!alternatives.isEmpty()) compareAlternatives(start, count);
    }
    first = highest(Math.max(1, upperBounds.length / (readsFast ? FIRST_SHARE_FAST : FIRST_SHARE)));
  }

  /** What a term can add to an accumulator in each block. */
  private static final class Bound {
    private final TermMaxima maxima;
    private final double[] sums;
    private final double factor;
    private final double[] contributions; // null where an impact adds its product with the factor

    Bound(TermMaxima maxima, Contribution contribution, Accumulators accumulators) {
      this.maxima = maxima;
      sums = accumulators.sums[contribution.accumulator];
      factor = contribution.factor;
      contributions = contribution.isLinear() ? null : table(maxima, contribution);
    }

    private static double[] table(TermMaxima maxima, Contribution contribution) {
      double[] table = new double[TermMaxima.VALUES];
      for (int value = 0; value < table.length; value++) table[value] = contribution.of(maxima.impact(value));
      return table;
    }

    void add(int from, int count) {
      if (contributions == null) {
        maxima.add(from, count, factor, sums);
      } else {
        for (int i = 0; i < count; i++) sums[i] += contributions[maxima.value(from + i)];
      }
    }
  }

  /** Notes what the nodes of the alternatives say of some blocks. */
  private void compareAlternatives(int start, int count) {
    for (int i = 0; i < count; i++) {
      double highest = 0;
      double second = 0;
      for (int n = 0; n < alternatives.size(); n++) {
        double bound = alternatives.get(n).node().upperBounds[i];
        second = Math.max(second, Math.min(bound, highest));
        if (bound > highest) {
          highest = bound;
          bestAlternatives[start + i] = (byte) n;
        }
      }
      if (second > 0) secondBounds[start + i] = Math.nextUp((float) second);
    }
  }

  /** Whether a block has an allowed document; blocks come in ascending order. */
  private boolean hasAny(FixedBitSet allowed, int place) {
    if (allowed == null) return true;
    if (nextAllowed < start(place)) nextAllowed = allowed.nextSetBit(start(place));
    return nextAllowed < end(place);
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
    if (count > 0) LargestFirst.select(blocks, 0, blocks.length, count - 1);
    int[] places = new int[count];
    for (int i = 0; i < count; i++) places[i] = (int) blocks[i];
    Arrays.sort(places);
    return places;
  }

  /**
   * Makes the window the next blocks, as many as it holds, of one part.
   *
   * @param nonCompetitive the largest upper bound that is not competitive
   * @return false when no more come
   */
  boolean fill(DocumentWindow window, double nonCompetitive) {
    begunPart = false;
    while (!fillFromPart(window, nonCompetitive)) {
      if (part > alternatives.size()) return false;
      part++;
      next = 0;
      begunPart = true;
    }
    return true;
  }

  private boolean fillFromPart(DocumentWindow window, double nonCompetitive) {
    window.clear();
    if (part > alternatives.size() && next == 0) {
      inARow = readsFast && competitiveShare(nonCompetitive) > IN_A_ROW;
    }
    int end = part == 0 ? first.length : upperBounds.length;
    int most = inARow ? Integer.MAX_VALUE : MOST_DOCUMENTS;
    double least = inARow ? 0 : nonCompetitive;
    for (; next < end && window.size() < most && !window.isFull(); next++) {
      int place = part == 0 ? first[next] : next;
      if (upperBounds[place] <= least || !isOfPart(place, nonCompetitive)) continue;
      window.addBlock(start(place), end(place));
      upperBounds[place] = 0;
    }
    return window.size() > 0;
  }

  private double competitiveShare(double nonCompetitive) {
    int count = 0;
    for (float bound : upperBounds) {
      if (bound > nonCompetitive) count++;
    }
    return (double) count / upperBounds.length;
  }

  private boolean isOfPart(int place, double nonCompetitive) {
    if (alternative() == null) return true;
    return bestAlternatives[place] == part - 1 && secondBounds[place] <= nonCompetitive;
  }

  /** Whether the last window is the first of its part, for which the postings are gone through anew. */
  boolean hasBegunPart() {
    return begunPart;
  }

  /** The alternative by which alone the blocks of this part are competitive; null where that is not known. */
  Alternative alternative() {
    return part == 0 || part > alternatives.size() ? null : alternatives.get(part - 1);
  }
}
