package io.compneg;

/** What Python asks about Java's heap before it passes something on. */
public final class Heap {
  private static volatile byte[] probe;

  private Heap() {}

  /** The megabytes that the heap may have at most. */
  public static int megabytes() {
    return (int) Math.min(Runtime.getRuntime().maxMemory() >> 20, Integer.MAX_VALUE);
  }

  /** Throws OutOfMemoryError if the heap has no room for so many bytes. Pyjnius would end the process. */
  public static void check(int bytes) {
    probe = new byte[bytes];
    probe = null;
  }

  /** Prints why a thread died, but for a full heap, which those who wait for it are told. */
  static void report(Thread thread, Throwable cause) {
    if (cause instanceof OutOfMemoryError) return;
    System.err.print("Exception in thread \"" + thread.getName() + "\" ");
    cause.printStackTrace();
  }
}
