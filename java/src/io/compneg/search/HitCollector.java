package io.compneg.search;

import java.io.IOException;

/** Collects the hits of a search as they are scored. */
interface HitCollector {
  /** How many hits are of use at most. */
  default int k() {
    return Integer.MAX_VALUE;
  }

  /** A further hit must reach this score to be of use; where it only equals it, its id decides. −∞ at first. */
  float minCompetitiveScore();

  /**
   * Collects a matching document. The documents of one window come in ascending order.
   *
   * @param doc its number in the whole index
   * @param score never −0
   */
  void collect(int doc, float score);

  /** Told when the documents of a window have been collected: the minimum competitive score may rise now. */
  default void endWindow() throws IOException {}
}
