package io.compneg.index;

import java.io.Closeable;
import java.io.IOException;
import java.util.Queue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.lucene.index.ConcurrentMergeScheduler;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.store.AlreadyClosedException;

/** The threads that write an index, and how they end when the disk or Java's heap is full. */
final class IndexingThreads {
  /** So long closing waits for what runs. A thread that ran out of memory may leave others waiting for ever. */
  private static final int CLOSE_SECONDS = 60;

  private static final int CLOSE_SECONDS_IF_BROKEN = 5;

  private final IndexWriter writer;
  private final Queue<? extends Work<?>> queued;
  private final ExecutorService pool;
  private final Heap heap = new Heap();
  private boolean broken;
  private Thread closing;
  private long closingEnds;
  private volatile boolean died; // a thread of the pool, whose own locks and queues break when the heap is full
  private byte[] reserve = new byte[1 << 19];
  private byte[] lastReserve = new byte[1 << 19];

  /**
   * Starts threads.
   *
   * @param queued what its owner has given to {@link #start}, and will wait for
   */
  IndexingThreads(int threads, IndexWriter writer, Queue<? extends Work<?>> queued) {
    if (Thread.getDefaultUncaughtExceptionHandler() == null) Thread.setDefaultUncaughtExceptionHandler(Heap::report);
    this.writer = writer;
    this.queued = queued;
    pool = Executors.newFixedThreadPool(threads, this::worker);
  }

  void start(Work<?> work) {
    pool.execute(work);
  }

  boolean isStopped() {
    return pool.isShutdown();
  }

  /** Whether work is done. Another failure ends the wait: what failed may never let go of what this waits for. */
  boolean isDone(Work<?> work, long milliseconds) throws IOException {
    try {
      if (!work.isDone(milliseconds)) {
        heap.checkProgress();
        if (died) throw failure(new OutOfMemoryError());
        for (Work<?> other : queued) {
          if (other.failure() != null) throw failure(other.failure());
        }
        return false;
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted", e);
    }
    if (work.failure() != null) throw failure(work.failure());
    return true;
  }

  /** The first cause of a failure. Once a disk is full, Lucene only says that its writer is closed. */
  IOException failure(Throwable cause) {
    broken = true;
    Throwable tragedy = writer.getTragicException();
    Throwable first = cause instanceof AlreadyClosedException && tragedy != null ? tragedy : cause;
    while (first.getCause() != null && !(first instanceof Error)) first = first.getCause();
    if (first instanceof Error error) {
      makeRoom();
      throw error;
    }
    return new IOException(first.getMessage() == null ? first.toString() : first.getMessage(), cause);
  }

  /** Ends what fills the heap: pyjnius would end the process if it had no room to pass an error on. */
  private void makeRoom() {
    reserve = null;
    for (int tries = 0; tries < CLOSE_SECONDS_IF_BROKEN; tries++) {
      try {
        stop(CLOSE_SECONDS_IF_BROKEN);
        break;
      } catch (OutOfMemoryError e) {
        LockSupport.parkNanos(TimeUnit.SECONDS.toNanos(1)); // a thread that has taken the reserve meets its end, too
      }
    }
    lastReserve = null;
  }

  /** Begins to end the threads, and then to do the last work, which commits nothing. */
  void close(Closeable last) {
    long seconds = broken || writer.getTragicException() != null ? CLOSE_SECONDS_IF_BROKEN : CLOSE_SECONDS;
    closing = daemon(() -> {
      try (last) {
        stop(seconds);
      } catch (IOException | RuntimeException | Error e) {
        // nothing of it is committed
      }
    });
    closing.start();
    closingEnds = System.nanoTime() + TimeUnit.SECONDS.toNanos(2 * seconds);
  }

  /** Waits for so long at most; returns whether all is closed, or closing it is given up. */
  boolean closed(long milliseconds) throws InterruptedException {
    closing.join(Math.max(1, milliseconds)); // 0 is without a limit
    return !closing.isAlive() || System.nanoTime() - closingEnds >= 0;
  }

  /** Ends the threads, or gives up waiting for them. */
  private void stop(long seconds) {
    pool.shutdownNow();
    queued.clear();
    try {
      pool.awaitTermination(seconds, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private Thread worker(Runnable loop) {
    return daemon(() -> {
      try {
        loop.run();
      } catch (RuntimeException | Error e) {
        died = true;
      }
    });
  }

  private static Thread daemon(Runnable work) {
    Thread thread = new Thread(work);
    thread.setDaemon(true);
    return thread;
  }

  /** Merges in threads. Lucene's writer knows why one failed, and tells who waits for it, so none prints it. */
  static final class QuietMerges extends ConcurrentMergeScheduler {
    @Override
    protected void handleMergeException(Throwable failure) {
      // see above
    }
  }
}
