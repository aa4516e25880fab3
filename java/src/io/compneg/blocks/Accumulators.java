package io.compneg.blocks;

import java.util.Arrays;
import java.util.BitSet;

/** The sums of some documents, which scoring adds up: one for each accumulator of a plan and place of a document. */
public final class Accumulators {
  /** Most impacts are below this. A contribution that is added more often gets a table of them. */
  private static final int TABULATED = 256;

  private static final int MOST_TABLES = 1024;

  private static final double[] NO_TABLE = {};

  /** By accumulator and place. */
  public final double[][] sums;

  /** What complete sums may still grow by: 0 for each accumulator. */
  public final double[] nothing;

  private final double[][] tables; // by contribution: of impacts below their length; a load is faster than arithmetic
  private final int[] added; // impacts, by contribution, until it has a table
  private int tabulated; // contributions

  // By accumulator: the impacts of dense terms that are not added yet, and their factors.
  private final byte[][][] waiting;
  private final double[][] factors;
  private final int[] waitingCounts;
  private final BitSet waitingIn = new BitSet(); // accumulators

  public Accumulators(int accumulators, int contributions, int places) {
    sums = new double[accumulators][places];
    nothing = new double[accumulators];
    tables = new double[contributions][];
    added = new int[contributions];
    Arrays.fill(tables, NO_TABLE);
    waiting = new byte[accumulators][DensePostings.TOGETHER][];
    factors = new double[accumulators][DensePostings.TOGETHER];
    waitingCounts = new int[accumulators];
  }

  /** Sets the sums of the first places to 0. */
  public void clear(int count) {
    for (double[] each : sums) Arrays.fill(each, 0, count, 0);
  }

  /** Adds what an impact contributes. */
  public void add(int place, int impact, Contribution[] contributions) {
    for (Contribution contribution : contributions) {
      sums[contribution.accumulator][place] += contribution.of(impact);
    }
  }

  /** Takes a dense term, whose impacts are added now or by {@link #addWaiting}. */
  void add(byte[] impacts, Contribution contribution, DocumentWindow window) {
    int accumulator = contribution.accumulator;
    int place = waitingCounts[accumulator]++;
    waiting[accumulator][place] = impacts;
    factors[accumulator][place] = contribution.factor;
    waitingIn.set(accumulator);
    if (place + 1 == DensePostings.TOGETHER) addWaiting(accumulator, window);
  }

  /** Adds the dense terms that wait; before it, the sums of the window lack them. */
  public void addWaiting(DocumentWindow window) {
    for (int i = waitingIn.nextSetBit(0); i >= 0; i = waitingIn.nextSetBit(i)) addWaiting(i, window);
  }

  private void addWaiting(int accumulator, DocumentWindow window) {
    int count = waitingCounts[accumulator];
    DensePostings.addTogether(waiting[accumulator], factors[accumulator], count, window, sums[accumulator]);
    waitingCounts[accumulator] = 0;
    waitingIn.clear(accumulator);
  }

  /**
   * What small impacts contribute.
   *
   * @param count how many impacts will be added; the table is made when they are many, and is empty before
   */
  public double[] table(Contribution contribution, int count) {
    int number = contribution.number;
    if (tables[number] == NO_TABLE && (added[number] += count) > TABULATED && tabulated < MOST_TABLES) {
      double[] table = new double[TABULATED];
      for (int impact = 0; impact < TABULATED; impact++) table[impact] = contribution.of(impact);
      tables[number] = table;
      tabulated++;
    }
    return tables[number];
  }
}
