package io.compneg.index;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** Runs independent work on several threads. */
public final class Parallel {
  /** Work on the element of some list at an index. */
  @FunctionalInterface
  public interface IndexedTask<T> {
    T run(int index) throws IOException;
  }

  private Parallel() {}

  /**
   * Runs a task for the indices 0 … count − 1; returns the results in this order.
   *
   * @throws IOException what the first task that fails has thrown, in the order of the indices; likewise a
   *     RuntimeException
   */
  public static <T> List<T> map(int count, int threads, IndexedTask<T> task) throws IOException {
    List<T> results = new ArrayList<>();
    if (threads <= 1 || count == 1) {
      for (int i = 0; i < count; i++) results.add(task.run(i));
      return results;
    }
    ExecutorService pool = Executors.newFixedThreadPool(Math.min(threads, count));
    try {
      List<Work<T>> pending = new ArrayList<>();
      for (int i = 0; i < count; i++) {
        int index = i;
        pending.add(new Work<>(() -> task.run(index)));
      }
      pending.forEach(pool::execute);
      for (Work<T> work : pending) results.add(result(work));
      return results;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted", e);
    } finally {
      pool.shutdownNow();
      pool.close(); // no task goes on when this returns, also where another one has failed
    }
  }

  private static <T> T result(Work<T> work) throws IOException, InterruptedException {
    while (!work.isDone(Long.MAX_VALUE)) {
    }
    switch (work.failure()) {
      case null -> {
        return work.result();
      }
      case RuntimeException cause -> throw cause;
      case Error cause -> throw cause;
      case Throwable cause -> throw new IOException(cause.getMessage(), cause);
    }
  }
}
