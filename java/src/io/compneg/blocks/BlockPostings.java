package io.compneg.blocks;

import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import org.apache.lucene.index.CorruptIndexException;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.store.IndexInput;
import org.apache.lucene.store.IndexOutput;
import org.apache.lucene.util.ArrayUtil;

/**
 * The postings of a term, grouped by the blocks of documents that {@link TermMaxima} bound, so that a block costs what
 * it holds. Lucene's own come in blocks of 128 or 256 postings, of which a competitive block of documents needs few.
 *
 * <p>A block is a bit for each of its documents, then the impacts of those that have the term, in 4, 8 or 16 bits each.
 * An empty block takes no bytes. The file has the <em>size</em> of each block: the bytes of its impacts, less 1. In
 * memory there are offsets: of each group of blocks, and of the block in its group.
 */
final class BlockPostings extends TermPostings {
  /** Blocks of a group: their bytes are counted by 16 bits. */
  private static final int GROUP = 64;

  /** The width of impacts of half a byte each. */
  static final int HALF = 4;

  private static final int LARGEST_HALF = (1 << HALF) - 1;
  private static final int HALVES_OF_LONG = Long.SIZE / HALF;

  private static final int MOST_IMPACT_BYTES = Short.BYTES * DocumentWindow.BLOCK; // of a block

  private static final VarHandle SHORT = MethodHandles.byteArrayViewVarHandle(short[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);

  private final IndexInput file;
  private final TermMaxima maxima;
  private final int width; // bits of an impact
  private final long start; // of the blocks
  private final int blocksStart; // of the offsets of blocks
  private byte[] bytes = new byte[(Integer.BYTES + MOST_IMPACT_BYTES) * 4]; // of some blocks

  /**
   * Reads the postings of a term.
   *
   * @param file for one thread; its position is set before each reading
   * @param start where {@link #write} began
   * @param maxima of the term, with the offsets of its blocks
   */
  BlockPostings(IndexInput file, long start, TermMaxima maxima) {
    this.file = file;
    this.start = start;
    this.maxima = maxima;
    blocksStart = Long.BYTES * groups(maxima.maxima.length);
    width = maxima.width;
  }

  /** The bytes of all offsets: 8 for each group, and 2 for each block and the end. */
  static int offsetBytes(int blocks) {
    return Long.BYTES * groups(blocks) + Short.BYTES * (blocks + 1);
  }

  private static int groups(int blocks) {
    return blocks / GROUP + 1;
  }

  /** The bits of an impact in 8 or 16, by {@link TermMaxima#shift}; 0 where some are too large for postings. */
  static int wholeWidth(int shift) {
    return shift == 0 ? Byte.SIZE : shift <= Byte.SIZE ? Short.SIZE : 0;
  }

  /** The bits that the impacts of a term need; 0 where some are too large, and its postings are not written. */
  static int width(TermMaxima maxima) {
    return maxima.shift() == 0 && maxima.largest() <= LARGEST_HALF ? HALF : wholeWidth(maxima.shift());
  }

  /** The sizes of the blocks of a term, whose impacts take {@code width} bits; 0 for an empty block. */
  static byte[] sizes(PostingsEnum postings, int blocks, int width) throws IOException {
    byte[] counts = new byte[blocks];
    while (postings.nextDoc() != DocIdSetIterator.NO_MORE_DOCS) counts[postings.docID() / DocumentWindow.BLOCK]++;
    for (int block = 0; block < blocks; block++) {
      if (counts[block] > 0) counts[block] = (byte) (impactBytes(counts[block], width) - 1);
    }
    return counts;
  }

  /** Puts the sizes of blocks of impacts of half a byte into the upper halves of their maxima. */
  static void addSizes(byte[] maxima, byte[] sizes) {
    for (int block = 0; block < sizes.length; block++) maxima[block] |= (byte) (sizes[block] << HALF);
  }

  /** Takes the sizes out of such maxima again. */
  static byte[] takeSizes(byte[] maxima) {
    byte[] sizes = new byte[maxima.length];
    for (int block = 0; block < sizes.length; block++) {
      sizes[block] = (byte) (maxima[block] >> HALF & LARGEST_HALF);
      maxima[block] &= LARGEST_HALF;
    }
    return sizes;
  }

  /** The offsets of blocks that have these maxima and sizes. */
  static byte[] offsets(byte[] maxima, byte[] sizes) {
    byte[] offsets = new byte[offsetBytes(sizes.length)];
    int blocksStart = Long.BYTES * groups(sizes.length);
    long group = 0;
    long offset = 0;
    for (int block = 0; block <= sizes.length; block++) {
      if (block % GROUP == 0) LONG.set(offsets, Long.BYTES * (block / GROUP), group = offset);
      SHORT.set(offsets, blocksStart + Short.BYTES * block, (short) (offset - group));
      if (block < sizes.length) offset += (sizes[block] & 0xFF) + (maxima[block] == 0 ? 0 : Integer.BYTES + 1);
    }
    return offsets;
  }

  /** How many bytes the blocks with these offsets have. */
  static long length(byte[] offsets, int blocks) {
    return offset(offsets, Long.BYTES * groups(blocks), blocks);
  }

  private static int impactBytes(int count, int width) {
    return count * width + Byte.SIZE - 1 >> 3;
  }

  /** Writes the blocks of a term, whose impacts take {@code width} bits. */
  static void write(PostingsEnum postings, int blocks, int width, IndexOutput out) throws IOException {
    byte[] impacts = new byte[MOST_IMPACT_BYTES];
    int doc = postings.nextDoc();
    for (int block = 0; block < blocks; block++) {
      long end = (block + 1L) * DocumentWindow.BLOCK;
      int documents = 0;
      int count = 0;
      for (; doc < end; doc = postings.nextDoc(), count++) {
        documents |= 1 << doc;
        int impact = postings.freq();
        if (width == Short.SIZE) {
          SHORT.set(impacts, Short.BYTES * count, (short) impact);
        } else if (width == Byte.SIZE) {
          impacts[count] = (byte) impact;
        } else if (count % 2 == 0) {
          impacts[count / 2] = (byte) impact;
        } else {
          impacts[count / 2] |= (byte) (impact << HALF);
        }
      }
      if (documents == 0) continue;
      out.writeInt(documents);
      out.writeBytes(impacts, impactBytes(count, width));
    }
  }

  @Override
  public boolean isPast(int doc) {
    return false;
  }

  @Override
  public void rewind() {}

  private long offset(int block) {
    return offset(maxima.offsets, blocksStart, block);
  }

  private static long offset(byte[] offsets, int blocksStart, int block) {
    long group = (long) LONG.get(offsets, Long.BYTES * (block / GROUP));
    return group + ((short) SHORT.get(offsets, blocksStart + Short.BYTES * block) & 0xFFFF);
  }

  @Override
  public int add(DocumentWindow window, Contribution[] contributions, Accumulators accumulators) throws IOException {
    int count = 0;
    for (int run = 0; run < window.runs; run++) {
      int first = window.runStarts[run] / DocumentWindow.BLOCK;
      int end = TermMaxima.blocks(window.runEnds[run]);
      count += add(first, end, window.runBases[run], contributions, accumulators);
    }
    return count;
  }

  @Override
  public int addOf(int[] places, int length, DocumentWindow window, Contribution[] contributions,
      Accumulators accumulators) throws IOException {
    int count = 0;
    for (int i = 0; i < length;) {
      int place = places[i] / DocumentWindow.BLOCK * DocumentWindow.BLOCK;
      int wanted = 0;
      for (; i < length && places[i] < place + DocumentWindow.BLOCK; i++) wanted |= 1 << places[i];
      int block = window.starts[place / DocumentWindow.BLOCK] / DocumentWindow.BLOCK;
      if (read(block, block + 1) == 0) continue;
      int documents = (int) INT.get(bytes, 0);
      wanted &= documents;
      count += Integer.bitCount(wanted);
      for (; wanted != 0; wanted &= wanted - 1) {
        int document = Integer.numberOfTrailingZeros(wanted);
        int impact = impact(Integer.BYTES, Integer.bitCount(documents & (1 << document) - 1));
        accumulators.add(place + document, impact, contributions);
      }
    }
    return count;
  }

  /** Adds some blocks in a row, whose documents have their sums at their distance from {@code base}. */
  private int add(int first, int end, int base, Contribution[] contributions, Accumulators accumulators)
      throws IOException {
    int length = read(first, end);
    if (length == 0) return 0;
    int count = 0;
    for (Contribution contribution : contributions) {
      double[] sums = accumulators.sums[contribution.accumulator];
      if (contribution.isLinear()) {
        count = addLinear(first, end, base, contribution.factor, sums);
      } else {
        count = addPowers(
            first, end, base, contribution, accumulators.table(contribution, Byte.SIZE * length / width), sums);
      }
    }
    return count;
  }

  private int addLinear(int first, int end, int base, double factor, double[] sums) {
    byte[] largest = maxima.maxima;
    byte[] read = bytes;
    int at = 0;
    int count = 0;
    for (int block = first; block < end; block++) {
      if (largest[block] == 0) continue;
      int documents = (int) INT.get(read, at);
      int place = block * DocumentWindow.BLOCK - base;
      at += Integer.BYTES;
      int begin = at;
      if (width == Byte.SIZE) {
        for (; documents != 0; documents &= documents - 1) {
          sums[place + Integer.numberOfTrailingZeros(documents)] += factor * (read[at++] & 0xFF);
        }
        count += at - begin;
      } else if (width == HALF) {
        int number = 0;
        while (documents != 0) {
          long halves = (long) LONG.get(read, begin + number / 2);
          for (int last = number + HALVES_OF_LONG; documents != 0 && number < last;
              documents &= documents - 1, number++) {
            sums[place + Integer.numberOfTrailingZeros(documents)] += factor * (int) (halves & LARGEST_HALF);
            halves >>>= HALF;
          }
        }
        at += number + 1 >> 1;
        count += number;
      } else {
        for (; documents != 0; documents &= documents - 1, at += Short.BYTES, count++) {
          sums[place + Integer.numberOfTrailingZeros(documents)] += factor * impact(at, 0);
        }
      }
    }
    return count;
  }

  private int addPowers(int first, int end, int base, Contribution contribution, double[] table, double[] sums) {
    int at = 0;
    int count = 0;
    for (int block = first; block < end; block++) {
      if (maxima.maxima[block] == 0) continue;
      int documents = (int) INT.get(bytes, at);
      int place = block * DocumentWindow.BLOCK - base;
      at += Integer.BYTES;
      int number = 0;
      for (; documents != 0; documents &= documents - 1) {
        int impact = impact(at, number++);
        sums[place + Integer.numberOfTrailingZeros(documents)] +=
            impact < table.length ? table[impact] : contribution.of(impact);
      }
      at += impactBytes(number, width);
      count += number;
    }
    return count;
  }

  /** Reads some blocks in a row; returns how many bytes they have. */
  private int read(int first, int end) throws IOException {
    long from = offset(first);
    long size = offset(end) - from;
    if (size == 0) return 0;
    if (size < 0 || size > (end - first) * (long) (Integer.BYTES + impactBytes(DocumentWindow.BLOCK, width))) {
      throw new CorruptIndexException("blocks of " + size + " bytes", file);
    }
    int length = (int) size;
    if (bytes.length < length + Long.BYTES) bytes = new byte[ArrayUtil.oversize(length + Long.BYTES, Byte.BYTES)];
    file.seek(start + from);
    file.readBytes(bytes, 0, length);
    return length;
  }

  /** One of the impacts of a block, which begin at {@code at}. */
  private int impact(int at, int number) {
    if (width == Byte.SIZE) return bytes[at + number] & 0xFF;
    if (width == HALF) return half(bytes, at, number);
    return (short) SHORT.get(bytes, at + Short.BYTES * number) & 0xFFFF;
  }

  private static int half(byte[] read, int at, int number) {
    return read[at + (number >> 1)] >> (number << 2 & HALF) & LARGEST_HALF;
  }

  /** Whether they are the same as Lucene's, which are before their first document. */
  boolean equal(PostingsEnum lucene) throws IOException {
    for (int block = 0; block < maxima.maxima.length; block++) {
      int documents = read(block, block + 1) == 0 ? 0 : (int) INT.get(bytes, 0);
      for (int number = 0; documents != 0; documents &= documents - 1) {
        int doc = block * DocumentWindow.BLOCK + Integer.numberOfTrailingZeros(documents);
        if (lucene.nextDoc() != doc || lucene.freq() != impact(Integer.BYTES, number++)) return false;
      }
    }
    return lucene.nextDoc() == DocIdSetIterator.NO_MORE_DOCS;
  }
}
