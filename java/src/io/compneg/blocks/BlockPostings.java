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
 * <p>A block is a bit for each of its documents, then the impacts of those that have the term, in one or two bytes
 * each. An empty block takes no bytes. Where the blocks are is found by the offset of each group of blocks, and by that
 * of the block in its group.
 */
final class BlockPostings extends TermPostings {
  /** Blocks of a group: their bytes are counted by 16 bits. */
  private static final int GROUP = 64;

  private static final VarHandle SHORT = MethodHandles.byteArrayViewVarHandle(short[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);

  private final IndexInput file;
  private final TermMaxima maxima;
  private final int width; // bytes of an impact
  private final long start; // of the blocks
  private final int blocksStart; // of the offsets of blocks
  private byte[] bytes = new byte[(Integer.BYTES + 2 * DocumentWindow.BLOCK) * 4]; // of some blocks

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
    width = width(maxima.shift());
  }

  /** The bytes behind the last block: 8 for each group, and 2 for each block and the end. */
  static int offsetBytes(int blocks) {
    return Long.BYTES * groups(blocks) + Short.BYTES * (blocks + 1);
  }

  private static int groups(int blocks) {
    return blocks / GROUP + 1;
  }

  /** The bytes of an impact, by {@link TermMaxima#shift}; 0 where some are too large, and a term is not written. */
  static int width(int shift) {
    return shift == 0 ? 1 : shift <= Byte.SIZE ? 2 : 0;
  }

  /** Writes all postings of a term, whose impacts take {@code width} bytes: its blocks, then their offsets. */
  static void write(PostingsEnum postings, int blocks, int width, IndexOutput out) throws IOException {
    long[] groups = new long[groups(blocks)];
    short[] offsets = new short[blocks + 1];
    byte[] impacts = new byte[2 * DocumentWindow.BLOCK];
    long start = out.getFilePointer();
    int doc = postings.nextDoc();
    for (int block = 0; block <= blocks; block++) {
      long offset = out.getFilePointer() - start;
      if (block % GROUP == 0) groups[block / GROUP] = offset;
      offsets[block] = (short) (offset - groups[block / GROUP]);
      long end = (block + 1L) * DocumentWindow.BLOCK;
      int documents = 0;
      int size = 0;
      for (; doc < end; doc = postings.nextDoc()) {
        documents |= 1 << doc;
        int impact = postings.freq();
        impacts[size++] = (byte) impact;
        if (width == 2) impacts[size++] = (byte) (impact >> Byte.SIZE);
      }
      if (documents == 0) continue;
      out.writeInt(documents);
      out.writeBytes(impacts, size);
    }
    for (long group : groups) out.writeLong(group);
    for (short offset : offsets) out.writeShort(offset);
  }

  @Override
  public boolean isPast(int doc) {
    return false;
  }

  @Override
  public void rewind() {}

  private long offset(int block) {
    long group = (long) LONG.get(maxima.offsets, Long.BYTES * (block / GROUP));
    return group + ((short) SHORT.get(maxima.offsets, blocksStart + Short.BYTES * block) & 0xFFFF);
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
        int impact = impact(Integer.BYTES + width * Integer.bitCount(documents & (1 << document) - 1));
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
    for (Contribution contribution : contributions) {
      double[] sums = accumulators.sums[contribution.accumulator];
      if (contribution.isLinear()) {
        addLinear(first, end, base, contribution.factor, sums);
      } else {
        addPowers(first, end, base, contribution, accumulators.table(contribution, length / width), sums);
      }
    }
    int blocks = 0;
    for (int block = first; block < end; block++) blocks += maxima.maxima[block] == 0 ? 0 : 1;
    return (length - blocks * Integer.BYTES) / width;
  }

  private void addLinear(int first, int end, int base, double factor, double[] sums) {
    byte[] largest = maxima.maxima;
    byte[] read = bytes;
    int at = 0;
    for (int block = first; block < end; block++) {
      if (largest[block] == 0) continue;
      int documents = (int) INT.get(read, at);
      int place = block * DocumentWindow.BLOCK - base;
      at += Integer.BYTES;
      if (width == 1) {
        for (; documents != 0; documents &= documents - 1) {
          sums[place + Integer.numberOfTrailingZeros(documents)] += factor * (read[at++] & 0xFF);
        }
      } else {
        for (; documents != 0; documents &= documents - 1, at += width) {
          sums[place + Integer.numberOfTrailingZeros(documents)] += factor * impact(at);
        }
      }
    }
  }

  private void addPowers(int first, int end, int base, Contribution contribution, double[] table, double[] sums) {
    int at = 0;
    for (int block = first; block < end; block++) {
      if (maxima.maxima[block] == 0) continue;
      int documents = (int) INT.get(bytes, at);
      int place = block * DocumentWindow.BLOCK - base;
      at += Integer.BYTES;
      for (; documents != 0; documents &= documents - 1, at += width) {
        int impact = impact(at);
        sums[place + Integer.numberOfTrailingZeros(documents)] +=
            impact < table.length ? table[impact] : contribution.of(impact);
      }
    }
  }

  /** Reads some blocks in a row; returns how many bytes they have. */
  private int read(int first, int end) throws IOException {
    long from = offset(first);
    long size = offset(end) - from;
    if (size == 0) return 0;
    if (size < 0 || size > (end - first) * (long) (Integer.BYTES + width * DocumentWindow.BLOCK)) {
      throw new CorruptIndexException("blocks of " + size + " bytes", file);
    }
    int length = (int) size;
    if (bytes.length < length) bytes = new byte[ArrayUtil.oversize(length, Byte.BYTES)];
    file.seek(start + from);
    file.readBytes(bytes, 0, length);
    return length;
  }

  private int impact(int at) {
    if (width == 1) return bytes[at] & 0xFF;
    return bytes[at] & 0xFF | (bytes[at + 1] & 0xFF) << Byte.SIZE;
  }

  /** Whether they are the same as Lucene's, which are before their first document. */
  boolean equal(PostingsEnum lucene) throws IOException {
    for (int block = 0; block < maxima.maxima.length; block++) {
      int documents = read(block, block + 1) == 0 ? 0 : (int) INT.get(bytes, 0);
      for (int at = Integer.BYTES; documents != 0; documents &= documents - 1, at += width) {
        int doc = block * DocumentWindow.BLOCK + Integer.numberOfTrailingZeros(documents);
        if (lucene.nextDoc() != doc || lucene.freq() != impact(at)) return false;
      }
    }
    return lucene.nextDoc() == DocIdSetIterator.NO_MORE_DOCS;
  }
}
