package io.compneg;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Work on queries that do not depend on each other, on several threads. */
final class Tasks {
  /** The work on one query. */
  @FunctionalInterface
  interface Task<T> {
    T run() throws IOException;
  }

  private Tasks() {}

  /** What the tasks give, in their order; the first exception in that order ends them all. */
  static <T> List<T> runAll(List<Task<T>> tasks, int threads) throws IOException {
    List<T> results = new ArrayList<>();
    if (threads <= 1 || tasks.size() == 1) {
      for (Task<T> task : tasks) results.add(task.run());
      return results;
    }
    ExecutorService pool = Executors.newFixedThreadPool(Math.min(threads, tasks.size()));
    try {
      List<Future<T>> pending = new ArrayList<>();
      for (Task<T> task : tasks) pending.add(pool.submit(task::run));
      for (Future<T> task : pending) results.add(task.get());
      return results;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted", e);
    } catch (ExecutionException e) {
      if (e.getCause() instanceof RuntimeException cause) throw cause;
      throw new IOException(e.getCause().getMessage(), e.getCause());
    } finally {
      pool.shutdownNow();
    }
  }
}
