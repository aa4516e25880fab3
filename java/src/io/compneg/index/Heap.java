package io.compneg.index;

import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.util.List;

/** What Python asks about Java's heap before it passes something on, and whether Java still gets anywhere. */
public final class Heap {
  private static final List<GarbageCollectorMXBean> COLLECTORS = ManagementFactory.getGarbageCollectorMXBeans();
  private static final long WINDOW_MILLISECONDS = 10_000;

  private static volatile byte[] probe;

  private long since;
  private long collectedBefore;

  Heap() {
    begin();
  }

  private void begin() {
    since = System.nanoTime();
    collectedBefore = collected();
  }

  private static long collected() {
    long milliseconds = 0;
    for (GarbageCollectorMXBean collector : COLLECTORS) {
      boolean besides = collector.getName().endsWith("Cycles") || collector.getName().contains("Concurrent");
      if (!besides) milliseconds += collector.getCollectionTime(); // the others run beside the program
    }
    return milliseconds;
  }

  /**
   * Throws OutOfMemoryError if nine tenths of the last ten seconds went into looking for memory. Java's own limit does
   * not count the room that is left for small objects, with which a build goes on for hours.
   */
  void checkProgress() {
    long milliseconds = (System.nanoTime() - since) / 1_000_000;
    if (milliseconds < WINDOW_MILLISECONDS) return;
    if (collected() - collectedBefore > milliseconds * 9 / 10) throw new OutOfMemoryError("no progress");
    begin();
  }

  /** The megabytes that the heap may have at most. */
  public static int megabytes() {
    return (int) Math.min(Runtime.getRuntime().maxMemory() >> 20, Integer.MAX_VALUE);
  }

  /** Throws OutOfMemoryError if the heap has no room for so many bytes. Pyjnius would end the process. */
  public static void check(int bytes) {
    probe = new byte[bytes];
    probe = null;
  }

  /** Prints why a thread died. Says nothing of a full heap: whoever waits for the thread gets that error. */
  static void report(Thread thread, Throwable cause) {
    if (cause instanceof OutOfMemoryError) return;
    System.err.print("Exception in thread \"" + thread.getName() + "\" ");
    cause.printStackTrace();
  }
}
