package io.compneg;

import java.io.IOException;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.lucene.index.IndexReader;

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

  private final IndexReader reader;
  private final String[] queries;
  private final Starter starter;
  private final Worker[] workers;
  private final AtomicInteger begun = new AtomicInteger();
  private final TopHitsCollector.Ranking[] rankings;
  private final Exception[] failures;
  private volatile boolean failed;
  private int done; // the queries before this one have rankings

  SearchBatch(IndexReader reader, String[] queries, Starter starter, int threads) {
    this.reader = reader;
    this.queries = queries;
    this.starter = starter;
    this.workers = new Worker[threads];
    this.rankings = new TopHitsCollector.Ranking[queries.length];
    this.failures = new Exception[queries.length];
    Arrays.setAll(workers, i -> new Worker());
  }

  /**
   * Searches for some time: one window of documents at least, and to the end of the window that is scored when the time
   * is over. No thread goes on after it. If the index is closed meanwhile, it stays open until then.
   *
   * @return {@link WireFormat#rankings} of the queries in their order, or {@link WireFormat#failure} of the first one
   *     that cannot be searched; null when there is more to search
   */
  public byte[] proceed(long milliseconds) throws IOException {
    long deadline = System.nanoTime() + milliseconds * 1_000_000;
    reader.incRef();
    try {
      Parallel.map(workers.length, workers.length, i -> workers[i].proceed(deadline));
    } finally {
      reader.decRef();
    }
    for (; done < queries.length; done++) {
      if (failures[done] != null) return WireFormat.failure(done, failures[done]);
      if (rankings[done] == null) return null;
    }
    return WireFormat.rankings(Arrays.asList(rankings));
  }

  /** Searches one query after the other, each time the next that no other worker has begun. */
  private final class Worker {
    private int query;
    private RunningSearch running; // null between two queries

    /** Goes on; returns whether it has more to do, as far as it knows. */
    boolean proceed(long deadline) {
      do {
        if (running == null && (failed || (query = begun.getAndIncrement()) >= queries.length)) return false;
        try {
          if (running == null) running = starter.start(queries[query]);
          rankings[query] = running.proceed(deadline);
        } catch (IOException | RuntimeException e) {
          failures[query] = e;
          failed = true; // what was begun before is searched to its end, since the first failure counts
        }
        if (rankings[query] != null || failures[query] != null) running = null;
      } while (System.nanoTime() - deadline < 0);
      return true;
    }
  }
}
