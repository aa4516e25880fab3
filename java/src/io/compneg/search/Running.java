package io.compneg.search;

import java.io.IOException;

/** The search of one query among some documents. It can be left, and taken up again. */
interface Running<C extends HitCollector> {
  /**
   * Goes on searching.
   *
   * @param deadline a value of {@link System#nanoTime}; no window but the first begins after it
   * @return the hits; null when it has to be taken up again
   */
  C proceed(long deadline) throws IOException;
}
