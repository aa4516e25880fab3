package io.compneg.blocks;

import java.io.IOException;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.search.DocIdSetIterator;

/**
 * The postings of a term that many documents of a segment have: an impact for each document, 0 for one without the
 * term, in memory. Neither reading nor looking up decodes anything.
 */
public final class DensePostings extends TermPostings {
  /** A larger impact does not fit. */
  private static final int LARGEST = 255;

  /** Adding an impact takes two fifths of the time in which a posting is found and added, measured on Java 21. */
  private static final double COST = 0.4;

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
    for (int doc = postings.nextDoc(); doc != DocIdSetIterator.NO_MORE_DOCS; doc = postings.nextDoc()) {
      int impact = postings.freq();
      if (impact > LARGEST) return null;
      impacts[doc] = (byte) impact;
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

  @Override
  public int add(DocumentWindow window, Contribution[] contributions, Accumulators accumulators) {
    for (Contribution contribution : contributions) {
      double[] sums = accumulators.sums[contribution.accumulator];
      double[] table = contribution.isLinear() ? null : accumulators.table(contribution, window.size());
      for (int run = 0; run < window.runs; run++) {
        int from = window.runStarts[run];
        int place = from - window.runBases[run];
        int count = window.runEnds[run] - from;
        if (table == null) {
          addLinear(from, place, count, contribution.factor, sums);
        } else if (table.length > 0) {
          addTabulated(from, place, count, table, sums);
        } else {
          for (int i = 0; i < count; i++) sums[place + i] += contribution.of(impacts[from + i] & LARGEST);
        }
      }
    }
    return window.size();
  }

  private void addLinear(int from, int place, int count, double factor, double[] sums) {
    byte[] read = impacts;
    for (int i = 0; i < count; i++) sums[place + i] += factor * (read[from + i] & LARGEST);
  }

  private void addTabulated(int from, int place, int count, double[] table, double[] sums) {
    byte[] read = impacts;
    for (int i = 0; i < count; i++) sums[place + i] += table[read[from + i] & LARGEST];
  }

  @Override
  public int addOf(
      int[] places, int length, DocumentWindow window, Contribution[] contributions, Accumulators accumulators) {
    byte[] read = impacts;
    for (Contribution contribution : contributions) {
      double[] sums = accumulators.sums[contribution.accumulator];
      double[] table = contribution.isLinear() ? null : accumulators.table(contribution, length);
      for (int i = 0; i < length; i++) {
        int impact = read[window.doc(places[i])] & LARGEST;
        sums[places[i]] += table == null ? contribution.factor * impact
            : impact < table.length      ? table[impact]
                                         : contribution.of(impact);
      }
    }
    return length;
  }
}
