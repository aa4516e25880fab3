package io.compneg;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Runs independent work on several threads. */
final class Parallel {
  /** Work on the element of some list at an index. */
  @FunctionalInterface
  interface IndexedTask<T> {
    T run(int index) throws IOException;
  }

  private Parallel() {}

  /**
   * Runs a task for the indices 0 … count − 1; returns the results in this order.
   *
   * @throws IOException what the first task that fails has thrown, in the order of the indices; likewise a
   *     RuntimeException
   */
  static <T> List<T> map(int count, int threads, IndexedTask<T> task) throws IOException {
    List<T> results = new ArrayList<>();
    if (threads <= 1 || count == 1) {
      for (int i = 0; i < count; i++) results.add(task.run(i));
      return results;
    }
    ExecutorService pool = Executors.newFixedThreadPool(Math.min(threads, count));
    try {
      List<Future<T>> pending = new ArrayList<>();
      for (int i = 0; i < count; i++) {
        int index = i;
        pending.add(pool.submit(() -> task.run(index)));
      }
      for (Future<T> result : pending) results.add(result.get());
      return results;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted", e);
    } catch (ExecutionException e) {
      if (e.getCause() instanceof RuntimeException cause) throw cause;
      if (e.getCause() instanceof Error cause) throw cause;
      throw new IOException(e.getCause().getMessage(), e.getCause());
    } finally {
      pool.shutdownNow();
      pool.close(); // no task goes on when this returns, also where another one has failed
    }
  }
}
