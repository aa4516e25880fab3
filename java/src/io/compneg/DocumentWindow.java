package io.compneg;

import org.apache.lucene.util.FixedBitSet;

/**
 * The documents that are scored at once, in ascending order: blocks of neighbours, with gaps between them where blocks
 * are left out. Each document has a place, from 0 without gaps, at which the accumulators hold its sums.
 */
final class DocumentWindow {
  /** Documents of a block; only the last of a window may have fewer. */
  static final int BLOCK = 32;

  private final int largest;
  private final int[] starts; // of the blocks
  private int blocks;
  private int size;

  // Blocks without a gap between them are one run.
  private final int[] runStarts;
  private final int[] runEnds;
  private final int[] runPlaces; // of the first document of each
  private int runs;

  /**
   * Makes a window without documents.
   *
   * @param largest how many it holds
   */
  DocumentWindow(int largest) {
    this.largest = largest;
    starts = new int[(largest + BLOCK - 1) / BLOCK];
    runStarts = new int[starts.length];
    runEnds = new int[starts.length];
    runPlaces = new int[starts.length];
  }

  void clear() {
    blocks = size = runs = 0;
  }

  /** Makes it the documents {@code [from, to)}. */
  void fill(int from, int to) {
    clear();
    for (int start = from; start < to; start += BLOCK) addBlock(start, Math.min(to, start + BLOCK));
  }

  /** Adds the documents {@code [from, to)} behind the others. */
  void addBlock(int from, int to) {
    starts[blocks++] = from;
    if (runs == 0 || runEnds[runs - 1] < from) {
      runStarts[runs] = from;
      runPlaces[runs++] = size;
    }
    runEnds[runs - 1] = to;
    size += to - from;
  }

  /** Whether it holds no further block. */
  boolean isFull() {
    return size + BLOCK > largest;
  }

  int blocks() {
    return blocks;
  }

  /** The first document of a block. */
  int start(int block) {
    return starts[block];
  }

  /** How many documents it has. */
  int size() {
    return size;
  }

  int doc(int place) {
    return starts[place / BLOCK] + place % BLOCK;
  }

  /** The document behind the last one. */
  int end() {
    return runEnds[runs - 1];
  }

  int runs() {
    return runs;
  }

  int runStart(int run) {
    return runStarts[run];
  }

  int runEnd(int run) {
    return runEnds[run];
  }

  /** What the documents of a run have their places from, so that {@code doc - base} is a place. */
  int runBase(int run) {
    return runStarts[run] - runPlaces[run];
  }

  /** Writes the places of the documents that are in a set; returns how many. */
  int placesIn(FixedBitSet documents, int[] places) {
    int count = 0;
    for (int run = 0; run < runs; run++) {
      int end = runEnds[run];
      for (int doc = runStarts[run]; doc < end && (doc = documents.nextSetBit(doc)) < end; doc++) {
        places[count++] = doc - runBase(run);
      }
    }
    return count;
  }

  boolean hasAny(FixedBitSet documents) {
    for (int run = 0; run < runs; run++) {
      if (documents.nextSetBit(runStarts[run]) < runEnds[run]) return true;
    }
    return false;
  }
}
