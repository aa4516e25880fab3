package io.compneg.search;

import java.util.concurrent.atomic.AtomicInteger;
import org.apache.lucene.util.NumericUtils;

/**
 * The score that a further hit of a query must reach to be of use; where it only equals it, its id decides. Threads
 * that search parts of the documents raise it for each other: k hits of one part rule out a lower score in all parts.
 */
final class MinCompetitiveScore {
  private final AtomicInteger bits = new AtomicInteger(sortable(Float.NEGATIVE_INFINITY));

  float get() {
    return NumericUtils.sortableIntToFloat(bits.get());
  }

  /** Makes it at least so high. */
  void raise(float score) {
    bits.accumulateAndGet(sortable(score), Math::max);
  }

  private static int sortable(float score) {
    return NumericUtils.floatToSortableInt(score);
  }
}
