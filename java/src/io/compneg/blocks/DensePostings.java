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

  /** So many terms are added at once: a sum is then read and written once for all of them. */
  static final int TOGETHER = 4;

  /** A larger impact does not fit. */
  private static final int LARGEST = 255;

  /** Adding an impact takes a seventh of the time in which a posting is found and added, measured on Java 21 and 25. */
  private static final double COST = 0.14;

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
  public double readingCost(double density) {
    return COST;
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
    byte[] read = impacts;
    double[] sums = accumulators.sums[contribution.accumulator];
    double[] table = accumulators.table(contribution, window.size());
    for (int run = 0; run < window.runs; run++) {
      int base = window.runBases[run];
      for (int doc = window.runStarts[run]; doc < window.runEnds[run]; doc++) {
        int impact = read[doc] + MIDDLE;
        sums[doc - base] += impact < table.length ? table[impact] : contribution.of(impact);
      }
    }
  }

  /**
   * Adds the impacts of some terms, each with its factor, to the sums of a window.
   *
   * @param count how many terms
   */
  static void addTogether(byte[][] impacts, double[] factors, int count, DocumentWindow window, double[] sums) {
    for (int run = 0; run < window.runs; run++) {
      int from = window.runStarts[run];
      int place = from - window.runBases[run];
      int length = window.runEnds[run] - from;
      int next = 0;
      if (count == TOGETHER) {
        addFour(impacts, factors, from, length, sums, place);
        continue;
      }
      if (count >= 2) {
        addTwo(impacts[0], factors[0], impacts[1], factors[1], from, length, sums, place);
        next = 2;
      }
      if (next < count) addOne(impacts[next], factors[next], from, length, sums, place);
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
