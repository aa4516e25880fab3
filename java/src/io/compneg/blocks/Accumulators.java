package io.compneg.blocks;

import java.util.Arrays;

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

  public Accumulators(int accumulators, int contributions, int places) {
    sums = new double[accumulators][places];
    nothing = new double[accumulators];
    tables = new double[contributions][];
    added = new int[contributions];
    Arrays.fill(tables, NO_TABLE);
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
