package io.compneg.blocks;

import java.io.IOException;

/** The postings of a term in one segment, for windows that come in ascending order. */
public abstract class TermPostings {
  /** Whether the documents before this one are read. */
  public abstract boolean isPast(int doc);

  /** Reads the postings of a window and adds what they contribute to the sums of each document; returns how many. */
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

  /** Goes back to before the first document. */
  public abstract void rewind() throws IOException;
}
