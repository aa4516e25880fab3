package io.compneg.blocks;

import java.io.IOException;

/** The postings of a term in one segment, for windows that come in ascending order. */
public abstract class TermPostings {
  /** What looking a document up costs, where its posting has to be found. */
  public static final double LOOK_UP_COST = 6;

  /** Whether the documents before this one are read. */
  public abstract boolean isPast(int doc);

  /**
   * Reads the postings of a window and adds what they contribute to the sums of each document, some of it not before
   * {@link Accumulators#addWaiting}; returns how many.
   */
  public abstract int add(DocumentWindow window, Contribution[] contributions, Accumulators accumulators)
      throws IOException;

  /**
   * Adds what the term contributes to some documents, and maybe to others of their blocks.
   *
   * @param places of the documents in the window, ascending
   * @return how many postings were used
   */
  public abstract int addOf(int[] places, int length, DocumentWindow window, Contribution[] contributions,
      Accumulators accumulators) throws IOException;

  /**
   * What reading costs for each document of a window, where reading a posting of {@link BlockPostings} costs 1.
   *
   * @param density the share of the documents that have the term
   * @param contributions what it adds
   */
  public double readingCost(double density, Contribution[] contributions) {
    return density;
  }

  /** What looking a document up costs, in the same unit. */
  public double lookUpCost() {
    return LOOK_UP_COST;
  }

  /** Goes back to before the first document. */
  public abstract void rewind() throws IOException;
}
