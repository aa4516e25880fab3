package io.compneg;

import java.io.IOException;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.search.DocIdSetIterator;

/** The largest impact of a term in each of some blocks of a segment's documents, rounded up to 8 bits. */
final class TermMaxima {
  static final int VALUES = 256;
  static final int LARGEST_SHIFT = 24; // of the largest impact

  final byte[] maxima; // 0 where no document of the block has the term
  int shift;
  byte[] offsets; // of the blocks of its postings; null without them

  TermMaxima(int blocks) {
    maxima = new byte[blocks];
  }

  /** What they take in memory. */
  int bytes() {
    return maxima.length + (offsets == null ? 0 : offsets.length);
  }

  /** How many blocks so many documents have. */
  static int blocks(int documents) {
    return (int) (((long) documents + DocumentWindow.BLOCK - 1) / DocumentWindow.BLOCK);
  }

  /**
   * Reads them from the postings of the term.
   *
   * @param postings with frequencies, and before their first document
   */
  static TermMaxima read(PostingsEnum postings, int blocks) throws IOException {
    TermMaxima read = new TermMaxima(blocks);
    for (int doc = postings.nextDoc(); doc != DocIdSetIterator.NO_MORE_DOCS; doc = postings.nextDoc()) {
      read.raise(doc / DocumentWindow.BLOCK, postings.freq());
    }
    return read;
  }

  private void raise(int block, int impact) {
    while (impact - 1 >> shift >= VALUES - 1) coarsen();
    int value = (impact - 1 >> shift) + 1;
    if (value > value(block)) maxima[block] = (byte) value;
  }

  private void coarsen() {
    for (int i = 0; i < maxima.length; i++) maxima[i] = (byte) (value(i) + 1 >> 1);
    shift++;
  }

  /** What the byte of a block says: an impact in units of 2^shift. */
  int value(int block) {
    return maxima[block] & VALUES - 1;
  }

  /** The largest impact that a value may stand for. */
  int impact(int value) {
    return (int) Math.min(Integer.MAX_VALUE, (long) value << shift);
  }

  /** No impact in the documents of a window is larger. */
  int upperBound(DocumentWindow window) {
    int largest = 0;
    for (int i = 0; i < window.blocks; i++) {
      largest = Math.max(largest, value(window.starts[i] / DocumentWindow.BLOCK));
    }
    return impact(largest);
  }
}
