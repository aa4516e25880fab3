package io.compneg.blocks;

import java.io.IOException;
import java.util.Arrays;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.search.DocIdSetIterator;

/**
 * The postings of a term that many documents of a segment have: an impact for each document, 0 for one without the
 * term, in memory. Neither reading nor looking up decodes anything.
 */
public final class DensePostings extends TermPostings {
  /** What is subtracted from an impact, so that it fits in a byte. */
  private static final int MIDDLE = 128;

  private static final int LARGEST_WHOLE_FLOAT = 1 << 24; // below it all whole numbers are floats

  /** So many terms are added at once: a sum is then read and written once for all of them. */
  static final int TOGETHER = 4;

  /** A larger impact does not fit. */
  private static final int LARGEST = 255;

  /** Adding an impact takes a seventh of the time in which a posting is found and added, measured on Java 21 and 25. */
  private static final double COST = 0.14;

  /** The same for a power, which is looked up in a table. */
  private static final double POWER_COST = 0.6;

  private final byte[] impacts;

  public DensePostings(byte[] impacts) {
    this.impacts = impacts;
  }

  /**
   * Reads the impact in each document; null where one does not fit.
   *
   * @param postings with frequencies, and before their first document
   * @param documents of the segment
   */
  public static byte[] read(PostingsEnum postings, int documents) throws IOException {
    byte[] impacts = new byte[documents];
    Arrays.fill(impacts, (byte) -MIDDLE);
    for (int doc = postings.nextDoc(); doc != DocIdSetIterator.NO_MORE_DOCS; doc = postings.nextDoc()) {
      int impact = postings.freq();
      if (impact > LARGEST) return null;
      impacts[doc] = (byte) (impact - MIDDLE);
    }
    return impacts;
  }

  @Override
  public double readingCost(double density, Contribution[] contributions) {
    double cost = 0;
    for (Contribution contribution : contributions) cost += contribution.isLinear() ? COST : POWER_COST;
    return cost;
  }

  @Override
  public double lookUpCost() {
    return 1;
  }

  @Override
  public boolean isPast(int doc) {
    return false;
  }

  @Override
  public void rewind() {}

  /** What is neither raised nor rounded waits in the accumulators, to be added together with other terms. */
  @Override
  public int add(DocumentWindow window, Contribution[] contributions, Accumulators accumulators) {
    for (Contribution contribution : contributions) {
      if (contribution.isLinear()) {
        accumulators.add(impacts, contribution, window);
      } else {
        addPowers(window, contribution, accumulators);
      }
    }
    return window.size();
  }

  private void addPowers(DocumentWindow window, Contribution contribution, Accumulators accumulators) {
    double[] sums = accumulators.sums[contribution.accumulator];
    double[] table = accumulators.table(contribution, window.size());
    for (int run = 0; run < window.runs; run++) {
      int from = window.runStarts[run];
      int place = from - window.runBases[run];
      int length = window.runEnds[run] - from;
      if (table.length > LARGEST) {
        addTabulated(impacts, from, length, table, sums, place);
      } else {
        for (int i = 0; i < length; i++) sums[place + i] += contribution.of(impacts[from + i] + MIDDLE);
      }
    }
  }

  private static void addTabulated(byte[] impacts, int from, int length, double[] table, double[] sums, int place) {
    for (int i = 0; i < length; i++) sums[place + i] += table[impacts[from + i] + MIDDLE];
  }

  /**
   * Adds the impacts of some terms, each with its factor, to the sums of a window.
   *
   * @param count how many terms
   */
  static void addTogether(byte[][] impacts, double[] factors, int count, DocumentWindow window, double[] sums) {
    boolean whole = count == TOGETHER && areExactInFloats(factors);
    for (int run = 0; run < window.runs; run++) {
      int from = window.runStarts[run];
      int place = from - window.runBases[run];
      int length = window.runEnds[run] - from;
      if (whole) {
        addFourWhole(impacts, factors, from, length, sums, place);
      } else if (count == TOGETHER) {
        addFour(impacts, factors, from, length, sums, place);
      } else {
        if (count >= 2) addTwo(impacts[0], factors[0], impacts[1], factors[1], from, length, sums, place);
        if (count != 2) addOne(impacts[count - 1], factors[count - 1], from, length, sums, place);
      }
    }
  }

  // The compiler makes vector instructions of these loops, but not of one that adds to a byte before it multiplies.

  private static void addOne(byte[] a, double factor, int from, int length, double[] sums, int place) {
    double middle = factor * MIDDLE;
    for (int i = 0; i < length; i++) sums[place + i] += factor * a[from + i] + middle;
  }

  private static void addTwo(
      byte[] a, double factorA, byte[] b, double factorB, int from, int length, double[] sums, int place) {
    double middle = factorA * MIDDLE + factorB * MIDDLE;
    for (int i = 0; i < length; i++) sums[place + i] += factorA * a[from + i] + factorB * b[from + i] + middle;
  }

  private static void addFour(byte[][] impacts, double[] factors, int from, int length, double[] sums, int place) {
    byte[] a = impacts[0];
    byte[] b = impacts[1];
    byte[] c = impacts[2];
    byte[] d = impacts[3];
    double factorA = factors[0];
    double factorB = factors[1];
    double factorC = factors[2];
    double factorD = factors[3];
    double middle = factorA * MIDDLE + factorB * MIDDLE + factorC * MIDDLE + factorD * MIDDLE;
    for (int i = 0; i < length; i++) {
      sums[place + i] +=
          factorA * a[from + i] + factorB * b[from + i] + factorC * c[from + i] + factorD * d[from + i] + middle;
    }
  }

  /** Adds four terms with whole factors, whose sums are exact in floats: a vector holds twice as many. */
  private static void addFourWhole(byte[][] impacts, double[] factors, int from, int length, double[] sums, int place) {
    byte[] a = impacts[0];
    byte[] b = impacts[1];
    byte[] c = impacts[2];
    byte[] d = impacts[3];
    float factorA = (float) factors[0];
    float factorB = (float) factors[1];
    float factorC = (float) factors[2];
    float factorD = (float) factors[3];
    float middle = factorA * MIDDLE + factorB * MIDDLE + factorC * MIDDLE + factorD * MIDDLE;
    for (int i = 0; i < length; i++) {
      sums[place + i] +=
          factorA * a[from + i] + factorB * b[from + i] + factorC * c[from + i] + factorD * d[from + i] + middle;
    }
  }

  private static boolean areExactInFloats(double[] factors) {
    double sum = 0;
    for (double factor : factors) {
      if (factor != Math.rint(factor)) return false;
      sum += factor;
    }
    return sum * LARGEST <= LARGEST_WHOLE_FLOAT;
  }

  @Override
  public int addOf(
      int[] places, int length, DocumentWindow window, Contribution[] contributions, Accumulators accumulators) {
    byte[] read = impacts;
    for (Contribution contribution : contributions) {
      double[] sums = accumulators.sums[contribution.accumulator];
      double[] table = contribution.isLinear() ? null : accumulators.table(contribution, length);
      for (int i = 0; i < length; i++) {
        int impact = read[window.doc(places[i])] + MIDDLE;
        sums[places[i]] += table == null ? contribution.factor * impact
            : impact < table.length      ? table[impact]
                                         : contribution.of(impact);
      }
    }
    return length;
  }
}
