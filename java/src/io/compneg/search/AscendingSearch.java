package io.compneg.search;

import java.io.IOException;

/** Searches ranges of documents in ascending order. Windows grow until they are {@link QueryPlan#window}. */
final class AscendingSearch implements SegmentSearch {
  /** The first window is small, so that what comes after it is pruned by a score from early on. */
  private static final int FIRST_WINDOW = 256;

  private final WindowScorer scorer;
  private final int largest;
  private int size; // of the next window
  private int position; // the documents below it are scored
  private int end;

  AscendingSearch(WindowScorer scorer, int largest) {
    this.scorer = scorer;
    this.largest = largest;
    size = Math.min(FIRST_WINDOW, largest);
  }

  /** Begins the documents {@code [from, to)} of the segment that the scorer has entered. */
  AscendingSearch begin(int from, int to) {
    position = from;
    end = to;
    return this;
  }

  /** Makes the next window a large one, because there is a score that prunes it. */
  void grow() {
    size = largest;
  }

  @Override
  public boolean scoreNext() throws IOException {
    int to = Math.min(end, position + size);
    scorer.score(position, to);
    position = to;
    size = Math.min(2 * size, largest);
    return position < end;
  }
}
