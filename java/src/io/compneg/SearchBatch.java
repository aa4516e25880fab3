package io.compneg;

import java.io.IOException;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.apache.lucene.index.IndexReader;

/**
 * The searches of some queries, for Python: the caller takes them up again and again until they are done. In between it
 * can hear signals, and give up.
 *
 * <p>With more threads than queries, the documents of a large index are parted, and the threads search the parts of the
 * queries.
 */
public final class SearchBatch {
  /** Reads a query, given by its place. */
  @FunctionalInterface
  interface Preparation {
    Starter prepare(int query, MinCompetitiveScore shared) throws IOException;
  }

  /** Begins the search of a query in a part of the documents. */
  @FunctionalInterface
  interface Starter {
    RunningSearch start(int fromDoc, int toDoc);
  }

  private final IndexReader reader;
  private final Preparation preparation;
  private final Search[] searches;
  private final int parts;
  private final Worker[] workers;
  private final AtomicInteger begun = new AtomicInteger(); // parts of all queries
  private volatile boolean failed;
  private int done; // the queries before this one have rankings

  SearchBatch(IndexReader reader, int queries, Preparation preparation, int threads, int smallestPart) {
    this.reader = reader;
    this.preparation = preparation;
    searches = IntStream.range(0, queries).mapToObj(Search::new).toArray(Search[] ::new);
    parts = Math.max(1, Math.min(Math.ceilDiv(threads, queries), reader.maxDoc() / smallestPart));
    workers = new Worker[Math.min(threads, parts * queries)];
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
    for (; done < searches.length; done++) {
      if (searches[done].failure != null) return WireFormat.failure(done, searches[done].failure);
      if (searches[done].ranking == null) return null;
    }
    return WireFormat.rankings(Arrays.stream(searches).map(search -> search.ranking).toList());
  }

  /** A query, and what was found in the parts that are searched. */
  private final class Search {
    final int query;
    final MinCompetitiveScore shared = new MinCompetitiveScore();
    Starter starter; // null before the first part is begun
    TopHitsCollector hits; // null before the first part is done
    int partsDone;
    TopHitsCollector.Ranking ranking; // null until all parts are done
    Exception failure; // null for none

    Search(int query) {
      this.query = query;
    }

    RunningSearch start(int part) throws IOException {
      return starter().start(bound(part), bound(part + 1));
    }

    private synchronized Starter starter() throws IOException {
      if (starter == null) starter = preparation.prepare(query, shared);
      return starter;
    }

    private int bound(int part) {
      return (int) ((long) reader.maxDoc() * part / parts);
    }

    synchronized void add(TopHitsCollector found) throws IOException {
      if (hits == null) {
        hits = found;
      } else {
        hits.addAll(found);
      }
      if (++partsDone == parts) ranking = hits.ranking();
    }
  }

  /** Searches one part after the other, each time the next that no other worker has begun. */
  private final class Worker {
    private Search search;
    private int part;
    private RunningSearch running; // null between two parts

    /** Goes on until there is no more to do, or the deadline. */
    Void proceed(long deadline) {
      do {
        if (running == null && (failed || !next())) return null;
        try {
          if (running == null) running = search.start(part);
          TopHitsCollector found = running.proceed(deadline);
          if (found == null) continue;
          search.add(found);
        } catch (IOException | RuntimeException e) {
          search.failure = e;
          failed = true; // what was begun before is searched to its end, since the first failure counts
        }
        running = null;
      } while (System.nanoTime() - deadline < 0);
      return null;
    }

    /** Takes the next part; false when all are begun. */
    private boolean next() {
      int number = begun.getAndIncrement();
      if (number >= searches.length * parts) return false;
      search = searches[number / parts];
      part = number % parts;
      return true;
    }
  }
}
