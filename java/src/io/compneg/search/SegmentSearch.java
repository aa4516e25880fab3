package io.compneg.search;

import java.io.IOException;

/** The search of some documents of a segment, in an order of its own. */
interface SegmentSearch {
  /** Scores the next window; returns whether there are more. */
  boolean scoreNext() throws IOException;
}
