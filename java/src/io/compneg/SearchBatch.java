package io.compneg;

import java.io.IOException;
import java.util.Arrays;

/**
 * The searches of some queries, for Python: the caller takes them up again and again until they are done. In between it
 * can hear signals, and give up.
 */
public final class SearchBatch {
  /** Begins the search of a query. */
  @FunctionalInterface
  interface Starter {
    RunningSearch start(String query) throws IOException;
  }

  private final String[] queries;
  private final Starter starter;
  private final int threads;
  private final RunningSearch[] running;
  private final TopHitsCollector.Ranking[] rankings;

  SearchBatch(String[] queries, Starter starter, int threads) {
    this.queries = queries;
    this.starter = starter;
    this.threads = threads;
    this.running = new RunningSearch[queries.length];
    this.rankings = new TopHitsCollector.Ranking[queries.length];
  }

  /**
   * Searches for some time, and to the end of the window that is scored then. No thread goes on after it.
   *
   * @return {@link WireFormat#rankings} of the queries in their order, or {@link WireFormat#failure} of the first one
   *     that cannot be searched; null when there is more to search
   */
  public byte[] proceed(long milliseconds) throws IOException {
    long deadline = System.nanoTime() + milliseconds * 1_000_000;
    try {
      Parallel.map(queries.length, threads, i -> proceed(i, deadline));
    } catch (Parallel.TaskFailure failure) {
      return WireFormat.failure(failure);
    }
    for (TopHitsCollector.Ranking ranking : rankings) {
      if (ranking == null) return null;
    }
    return WireFormat.rankings(Arrays.asList(rankings));
  }

  private boolean proceed(int i, long deadline) throws IOException {
    if (rankings[i] != null || System.nanoTime() - deadline > 0) return false;
    if (running[i] == null) running[i] = starter.start(queries[i]);
    rankings[i] = running[i].proceed(deadline);
    if (rankings[i] != null) running[i] = null; // its memory is needed no more
    return true;
  }
}
