package io.compneg.blocks;

import org.apache.lucene.util.FixedBitSet;

/**
 * The documents that are scored at once, in ascending order: blocks of neighbours, with gaps between them where blocks
 * are left out. Each document has a place, from 0 without gaps, at which the accumulators hold its sums.
 */
public final class DocumentWindow {
  /** Documents of a block; only the last of a window may have fewer. */
  public static final int BLOCK = 32;

  private static final int SHIFT = 5; // 2^5 = 32

  final int[] starts; // of the blocks
  int blocks;
  private int size; // in documents

  // Blocks without a gap between them are one run.
  final int[] runStarts;
  final int[] runEnds;
  final int[] runBases; // a document minus the base of its run is its place
  int runs;

  private final int largest;

  public DocumentWindow(int largest) {
    this.largest = largest;
    int most = (largest + BLOCK - 1) / BLOCK;
    starts = new int[most];
    runStarts = new int[most];
    runEnds = new int[most];
    runBases = new int[most];
  }

  public void clear() {
    blocks = size = runs = 0;
  }

  /** Makes it the documents {@code [from, to)}. */
  public void fill(int from, int to) {
    clear();
    for (int start = from; start < to; start += BLOCK) addBlock(start, Math.min(to, start + BLOCK));
  }

  /** Adds the documents {@code [from, to)} behind the others. */
  public void addBlock(int from, int to) {
    starts[blocks++] = from;
    if (runs == 0 || end() < from) {
      runStarts[runs] = from;
      runBases[runs++] = from - size;
    }
    runEnds[runs - 1] = to;
    size += to - from;
  }

  public boolean isFull() {
    return size + BLOCK > largest;
  }

  /** How many documents there are. */
  public int size() {
    return size;
  }

  public int doc(int place) {
    return starts[place >>> SHIFT] + (place & BLOCK - 1); // for every candidate: a division takes more time
  }

  /** The first document. */
  public int start() {
    return starts[0];
  }

  /** The document behind the last one. */
  public int end() {
    return runEnds[runs - 1];
  }

  /** Writes the places of the documents that are in a set; returns how many. */
  public int placesIn(FixedBitSet documents, int[] places) {
    int count = 0;
    for (int run = 0; run < runs; run++) {
      int end = runEnds[run];
      for (int doc = runStarts[run]; doc < end && (doc = documents.nextSetBit(doc)) < end; doc++) {
        places[count++] = doc - runBases[run];
      }
    }
    return count;
  }

  public boolean hasAny(FixedBitSet documents) {
    for (int run = 0; run < runs; run++) {
      if (documents.nextSetBit(runStarts[run]) < runEnds[run]) return true;
    }
    return false;
  }
}
