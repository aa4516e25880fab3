package io.compneg.search;

import java.io.IOException;

/** A collector of the hits in a part of the documents. What the parts found is put together by {@link #addAll}. */
interface Mergeable<C, R> extends HitCollector {
  /** Adds what was collected in another part. */
  void addAll(C other);

  /** What was found in all parts that were added. */
  R result() throws IOException;
}
