package io.compneg;

import org.apache.lucene.util.FixedBitSet;

/**
 * The documents that are scored at once, in ascending order: blocks of neighbours, with gaps between them where blocks
 * are left out. Each document has a place, from 0 without gaps, at which the accumulators hold its sums.
 */
final class DocumentWindow {
  /** Documents of a block; only the last of a window may have fewer. */
  static final int BLOCK = 32;

  private static final int SHIFT = 5; // 2^5 = 32

  final int[] starts; // of the blocks
  int blocks;
  int size; // in documents

  // Blocks without a gap between them are one run.
  final int[] runStarts;
  final int[] runEnds;
  final int[] runBases; // a document minus the base of its run is its place
  int runs;

  private final int largest;

  DocumentWindow(int largest) {
    this.largest = largest;
    int most = (largest + BLOCK - 1) / BLOCK;
    starts = new int[most];
    runStarts = new int[most];
    runEnds = new int[most];
    runBases = new int[most];
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
    if (runs == 0 || end() < from) {
      runStarts[runs] = from;
      runBases[runs++] = from - size;
    }
    runEnds[runs - 1] = to;
    size += to - from;
  }

  boolean isFull() {
    return size + BLOCK > largest;
  }

  int doc(int place) {
    return starts[place >>> SHIFT] + (place & BLOCK - 1); // for every candidate: a division takes more time
  }

  /** The document behind the last one. */
  int end() {
    return runEnds[runs - 1];
  }

  /** Writes the places of the documents that are in a set; returns how many. */
  int placesIn(FixedBitSet documents, int[] places) {
    int count = 0;
    for (int run = 0; run < runs; run++) {
      int end = runEnds[run];
      for (int doc = runStarts[run]; doc < end && (doc = documents.nextSetBit(doc)) < end; doc++) {
        places[count++] = doc - runBases[run];
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
