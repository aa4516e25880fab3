package io.compneg.search;

import io.compneg.index.Parallel;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.lucene.index.IndexReader;

/**
 * The searches of some queries, for Python: the caller takes them up again and again until they are done. In between it
 * can hear signals, and give up.
 *
 * <p>With more threads than queries, the documents of a large index are parted, and the threads search the parts of the
 * queries.
 */
public final class SearchBatch<C extends Mergeable<C, R>, R> {
  /** Reads a query, given by its place; null when that takes longer than the time that is left. */
  @FunctionalInterface
  interface Preparation<C extends HitCollector> {
    Starter<C> prepare(int query, MinCompetitiveScore shared, long deadline) throws IOException;
  }

  /** Begins the search of a query in a part of the documents. */
  @FunctionalInterface
  interface Starter<C extends HitCollector> {
    Running<C> start(int fromDoc, int toDoc);
  }

  private final IndexReader reader;
  private final Preparation<C> preparation;
  private final Function<List<R>, byte[]> packing;
  private final List<Search> searches;
  private final int parts;
  private final List<Worker> workers;
  private final AtomicInteger begun = new AtomicInteger(); // parts of all queries
  private volatile boolean failed;
  private int done; // the queries before this one have rankings

  /** Prepares the searches; {@code packing} writes what they find for Python. */
  SearchBatch(IndexReader reader, int queries, Preparation<C> preparation, Function<List<R>, byte[]> packing,
      int threads, int smallestPart) {
    this.reader = reader;
    this.preparation = preparation;
    this.packing = packing;
    searches = IntStream.range(0, queries).mapToObj(Search::new).toList();
    parts = Math.max(1, Math.min(Math.ceilDiv(threads, queries), reader.maxDoc() / smallestPart));
    workers = Stream.generate(Worker::new).limit(Math.min(threads, parts * queries)).toList();
  }

  /**
   * Searches for some time: one window of documents at least, and to the end of the window that is scored when the time
   * is over. No thread goes on after it. If the index is closed meanwhile, it stays open until then.
   *
   * @return what was found for the queries in their order, packed, or {@link WireFormat#failure} of the first one
   *     that cannot be searched; null when there is more to search
   */
  public byte[] proceed(long milliseconds) throws IOException {
    long deadline = System.nanoTime() + milliseconds * 1_000_000;
    reader.incRef();
    try {
      Parallel.map(workers.size(), workers.size(), i -> workers.get(i).proceed(deadline));
    } finally {
      reader.decRef();
    }
    for (; done < searches.size(); done++) {
      if (searches.get(done).failure != null) return WireFormat.failure(done, searches.get(done).failure);
      if (searches.get(done).result == null) return null;
    }
    return packing.apply(searches.stream().map(search -> search.result).toList());
  }

  /** A query, and what was found in the parts that are searched. */
  private final class Search {
    final int query;
    final MinCompetitiveScore shared = new MinCompetitiveScore();
    Starter<C> starter; // null before the first part is begun
    C hits; // null before the first part is done
    int partsDone;
    R result; // null until all parts are done
    Exception failure; // null for none

    Search(int query) {
      this.query = query;
    }

    /** Begins the search of a part; null when the query is not prepared yet. */
    Running<C> start(int part, long deadline) throws IOException {
      Starter<C> prepared = starter(deadline);
      return prepared == null ? null : prepared.start(bound(part), bound(part + 1));
    }

    private synchronized Starter<C> starter(long deadline) throws IOException {
      if (starter == null) starter = preparation.prepare(query, shared, deadline);
      return starter;
    }

    private int bound(int part) {
      return (int) ((long) reader.maxDoc() * part / parts);
    }

    synchronized void add(C found) throws IOException {
      if (hits == null) {
        hits = found;
      } else {
        hits.addAll(found);
      }
      if (++partsDone == parts) result = hits.result();
    }
  }

  /** Searches one part after the other, each time the next that no other worker has begun. */
  private final class Worker {
    private Search search; // null between two parts
    private int part;
    private Running<C> running; // null until the search has begun

    /** Goes on until there is no more to do, or the deadline. */
    Void proceed(long deadline) {
      do {
        if (search == null && (failed || !next())) return null;
        try {
          if (running == null) running = search.start(part, deadline);
          C found = running == null ? null : running.proceed(deadline);
          if (found == null) continue;
          search.add(found);
        } catch (IOException | RuntimeException e) {
          search.failure = e;
          failed = true; // what was begun before is searched to its end, since the first failure counts
        }
        search = null;
        running = null;
      } while (System.nanoTime() - deadline < 0);
      return null;
    }

    /** Takes the next part; false when all are begun. */
    private boolean next() {
      int number = begun.getAndIncrement();
      if (number >= searches.size() * parts) return false;
      search = searches.get(number / parts);
      part = number % parts;
      return true;
    }
  }
}
