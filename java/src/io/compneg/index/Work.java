package io.compneg.index;

import java.util.concurrent.Callable;

/**
 * Work for another thread, which is done whatever ends it. A {@link java.util.concurrent.FutureTask} whose thread has
 * no memory left while it notes its failure stays half done, and whoever asks for it spins for ever.
 */
final class Work<T> implements Runnable {
  private final Callable<T> task;
  private T result;
  private Throwable failure;
  private boolean done;

  Work(Callable<T> task) {
    this.task = task;
  }

  @Override
  public void run() {
    T made = null;
    Throwable thrown = null;
    try {
      made = task.call();
    } catch (Throwable t) {
      thrown = t;
    }
    synchronized (this) { // nothing here needs memory
      result = made;
      failure = thrown;
      done = true;
      notifyAll();
    }
  }

  /** Waits for so long at most; returns whether it is done. */
  synchronized boolean isDone(long milliseconds) throws InterruptedException {
    if (!done && milliseconds > 0) wait(milliseconds);
    return done;
  }

  /** What it has made; null if it failed. */
  synchronized T result() {
    return result;
  }

  /** What ended it; null if it has a result, or is not done. */
  synchronized Throwable failure() {
    return failure;
  }
}
