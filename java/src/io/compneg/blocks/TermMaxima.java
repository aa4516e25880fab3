package io.compneg.blocks;

import java.io.IOException;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.search.DocIdSetIterator;

/** The largest impact of a term in each of some blocks of a segment's documents, rounded up to 8 bits. */
public final class TermMaxima {
  public static final int VALUES = 256;
  static final int LARGEST_SHIFT = 24; // of the largest impact

  final byte[] maxima; // 0 where no document of the block has the term
  final byte[] offsets; // of the blocks of its postings; null without them
  final int width; // of an impact of its postings, in bits
  private int shift;

  /** The maxima of a term without postings. */
  TermMaxima(byte[] maxima, int shift) {
    this(maxima, shift, null, 0);
  }

  TermMaxima(byte[] maxima, int shift, byte[] offsets, int width) {
    this.maxima = maxima;
    this.shift = shift;
    this.offsets = offsets;
    this.width = width;
  }

  /** The unit of the values is 2^shift. */
  int shift() {
    return shift;
  }

  /** Whether the file of the maxima has the postings of the term, too. */
  public boolean hasPostings() {
    return offsets != null;
  }

  /** What they take in memory. */
  public int bytes() {
    return maxima.length + (offsets == null ? 0 : offsets.length);
  }

  /** How many blocks so many documents have. */
  public static int blocks(int documents) {
    return (int) (((long) documents + DocumentWindow.BLOCK - 1) / DocumentWindow.BLOCK);
  }

  /**
   * Reads them from the postings of the term.
   *
   * @param postings with frequencies, and before their first document
   */
  static TermMaxima read(PostingsEnum postings, int blocks) throws IOException {
    TermMaxima read = new TermMaxima(new byte[blocks], 0);
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
  public int value(int block) {
    return maxima[block] & VALUES - 1;
  }

  /** Coarsens the values until they fit in 7 bits, for {@link #add}. */
  TermMaxima inSevenBits() {
    while (largest() > Byte.MAX_VALUE) coarsen();
    return this;
  }

  /** The largest value of all blocks. */
  int largest() {
    int largest = 0;
    for (int block = 0; block < maxima.length; block++) largest = Math.max(largest, value(block));
    return largest;
  }

  /** The largest impact that a value may stand for. */
  public int impact(int value) {
    return (int) Math.min(Integer.MAX_VALUE, (long) value << shift);
  }

  /** Adds the product of a factor and the impact that each of some blocks has at most. */
  public void add(int from, int count, double factor, double[] sums) {
    double unit = factor * (1 << shift);
    for (int i = 0; i < count; i++) sums[i] += unit * maxima[from + i]; // vector instructions, as no byte is negative
  }

  /** No impact in the documents of a window is larger. */
  public int upperBound(DocumentWindow window) {
    int largest = 0;
    for (int i = 0; i < window.blocks; i++) {
      largest = Math.max(largest, value(window.starts[i] / DocumentWindow.BLOCK));
    }
    return impact(largest);
  }
}
