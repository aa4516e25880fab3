package io.compneg.blocks;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.lucene.codecs.CodecUtil;
import org.apache.lucene.index.CorruptIndexException;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.LeafReader;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.SegmentReader;
import org.apache.lucene.index.Terms;
import org.apache.lucene.index.TermsEnum;
import org.apache.lucene.store.Directory;
import org.apache.lucene.store.IOContext;
import org.apache.lucene.store.IndexInput;
import org.apache.lucene.store.IndexOutput;
import org.apache.lucene.util.BytesRef;
import org.apache.lucene.util.IOUtils;
import org.apache.lucene.util.StringHelper;

/**
 * The block maxima of a segment whose documents stand in a good order, in a file beside those of Lucene: {@link
 * TermMaxima} of the frequent terms, and their {@link BlockPostings}. Lucene's own are of blocks of 128 postings, which
 * for most terms span too many documents to tell the good ones from the others.
 *
 * <p>A term with fewer postings than the segment has blocks is not in the file, and a term whose impacts are of 4 bits
 * is not if fewer than one in {@value #RAREST_HALVES} documents have it. Its postings are read instead, which takes
 * about as long. A latent model has most of its terms in between, where the file would have the most bytes for each
 * posting.
 *
 * <p>The file has a row for each term: its shift, then a byte for each block, which is its maximum. Where all impacts
 * are of 4 bits, the shift is {@link #HALVES}, and the upper half of the byte is the size of the block's postings.
 * Behind the rows are the blocks of postings of each term, and behind these, if a byte of the row is all maximum, a
 * byte for the size of each. At last come the places of the terms' postings. A file of version 2 has no halves, offsets
 * in place of sizes, and the terms that have as many postings as there are blocks; one of version 1 has no postings.
 * Both are read.
 *
 * <p>The file names its segment by the id that Lucene gave it. Deletions leave the maxima upper bounds. A merge makes
 * another segment, for which the file says nothing; it is searched with Lucene's maxima, as is an index without a file.
 *
 * <p>Source: Mallia, Suel and Tonellotto, Faster Learned Sparse Retrieval with Block-Max Pruning, SIGIR 2024.
 */
public final class BlockMaxima {
  public static final String FILE = "compneg.maxima";
  public static final String UNFINISHED = FILE + ".tmp";

  /** The file of an update, until its commit is the index. So either commit has its file, whenever it is killed. */
  public static final String NEXT = FILE + ".next";

  private static final String CODEC = "CompnegBlockMaxima";
  private static final int MAXIMA_ONLY = 1;
  private static final int WITH_OFFSETS = 2;
  private static final int VERSION = 3;

  /** In place of a shift, which is 0. */
  private static final byte HALVES = -1;

  /** One in so many documents has a term of the file whose impacts are of 4 bits. */
  private static final int RAREST_HALVES = 8;

  private final IndexInput file;
  private final LeafReaderContext segment;
  private final Map<BytesRef, Integer> rows;
  private final long firstRow;
  private final long[] postings; // where the postings of each row begin, and their end; null without postings
  public final int blocks;
  private final int version;

  private BlockMaxima(IndexInput file, LeafReaderContext segment, Map<BytesRef, Integer> rows, long firstRow,
      long[] postings, int blocks, int version) {
    this.file = file;
    this.segment = segment;
    this.rows = rows;
    this.firstRow = firstRow;
    this.postings = postings;
    this.blocks = blocks;
    this.version = version;
  }

  /** Writes the file of a segment, {@link #FILE} or {@link #NEXT}. The file appears atomically. */
  static void write(LeafReader segment, String field, Directory directory, String name)
      throws IOException, InterruptedException {
    int blocks = TermMaxima.blocks(segment.maxDoc());
    List<BytesRef> kept = kept(segment.terms(field), segment.maxDoc(), VERSION);
    if (kept.isEmpty()) return;
    TermsEnum terms = segment.terms(field).iterator();
    IOUtils.deleteFilesIgnoringExceptions(directory, UNFINISHED); // of a try that failed
    try (IndexOutput out = directory.createOutput(UNFINISHED, IOContext.DEFAULT)) {
      CodecUtil.writeHeader(out, CODEC, VERSION);
      out.writeBytes(id(segment), StringHelper.ID_LENGTH);
      writeText(out, new BytesRef(field));
      out.writeVInt(kept.size());
      for (BytesRef term : kept) writeText(out, term);
      int[] widths = new int[kept.size()];
      for (int row = 0; row < widths.length; row++) {
        if (Thread.interrupted()) throw new InterruptedException();
        TermMaxima maxima = TermMaxima.read(postings(terms, kept.get(row), PostingsEnum.FREQS), blocks);
        widths[row] = BlockPostings.width(maxima);
        boolean halves = widths[row] == BlockPostings.HALF;
        out.writeByte(halves ? HALVES : (byte) maxima.shift());
        if (halves) BlockPostings.addSizes(maxima.maxima, sizes(terms, kept.get(row), blocks, widths[row]));
        out.writeBytes(maxima.maxima, blocks);
      }
      writePostings(terms, kept, blocks, widths, out);
      CodecUtil.writeFooter(out);
    }
    directory.sync(List.of(UNFINISHED));
    directory.rename(UNFINISHED, name);
    directory.syncMetaData();
  }

  /**
   * Lets the file of an update take the place of the last one if its segment is in the index, and removes it if not.
   */
  public static void takeNext(DirectoryReader reader) throws IOException {
    Directory directory = reader.directory();
    byte[] segment = segment(directory, NEXT);
    if (segment == null) return;
    if (leaf(reader, segment) == null) {
      directory.deleteFile(NEXT);
    } else {
      directory.rename(NEXT, FILE);
      directory.syncMetaData();
    }
  }

  /** The id of the segment that a file is of; null without the file. */
  static byte[] segment(Directory directory, String name) throws IOException {
    try (IndexInput file = directory.openInput(name, IOContext.DEFAULT)) {
      CodecUtil.checkHeader(file, CODEC, MAXIMA_ONLY, VERSION);
      return readId(file);
    } catch (NoSuchFileException | FileNotFoundException e) {
      return null;
    }
  }

  private static byte[] readId(IndexInput file) throws IOException {
    byte[] id = new byte[StringHelper.ID_LENGTH];
    file.readBytes(id, 0, id.length);
    return id;
  }

  private static LeafReaderContext leaf(DirectoryReader reader, byte[] segment) {
    for (LeafReaderContext leaf : reader.leaves()) {
      if (Arrays.equals(segment, id(leaf.reader()))) return leaf;
    }
    return null;
  }

  /** Writes the postings of all terms whose impacts are not too large, then where each begins and the last ends. */
  private static void writePostings(TermsEnum terms, List<BytesRef> kept, int blocks, int[] widths, IndexOutput out)
      throws IOException, InterruptedException {
    long[] starts = new long[kept.size() + 1];
    for (int row = 0; row < widths.length; row++) {
      if (Thread.interrupted()) throw new InterruptedException();
      starts[row] = out.getFilePointer();
      if (widths[row] == 0) continue;
      BlockPostings.write(postings(terms, kept.get(row), PostingsEnum.FREQS), blocks, widths[row], out);
      if (widths[row] != BlockPostings.HALF) out.writeBytes(sizes(terms, kept.get(row), blocks, widths[row]), blocks);
    }
    starts[widths.length] = out.getFilePointer();
    for (long start : starts) out.writeLong(start);
  }

  private static void writeText(IndexOutput out, BytesRef text) throws IOException {
    out.writeVInt(text.length);
    out.writeBytes(text.bytes, text.offset, text.length);
  }

  private static BytesRef readText(IndexInput file) throws IOException {
    int length = file.readVInt();
    if (length < 0 || length > file.length() - file.getFilePointer()) throw new CorruptIndexException("a text", file);
    byte[] text = new byte[length];
    file.readBytes(text, 0, length);
    return new BytesRef(text);
  }

  /** The terms that are in the file of a segment of so many documents, in the order of the segment. */
  private static List<BytesRef> kept(Terms terms, int documents, int version) throws IOException {
    int blocks = TermMaxima.blocks(documents);
    List<BytesRef> kept = new ArrayList<>();
    TermsEnum each = terms == null ? TermsEnum.EMPTY : terms.iterator();
    for (BytesRef term = each.next(); term != null; term = each.next()) {
      if (each.docFreq() < blocks) continue;
      if (version > WITH_OFFSETS && each.docFreq() < documents / RAREST_HALVES) {
        TermMaxima maxima = TermMaxima.read(each.postings(null, PostingsEnum.FREQS), blocks);
        if (BlockPostings.width(maxima) == BlockPostings.HALF) continue;
      }
      kept.add(BytesRef.deepCopyOf(term));
    }
    return kept;
  }

  private static byte[] sizes(TermsEnum terms, BytesRef term, int blocks, int width) throws IOException {
    return BlockPostings.sizes(postings(terms, term, PostingsEnum.NONE), blocks, width);
  }

  private static PostingsEnum postings(TermsEnum terms, BytesRef term, int flags) throws IOException {
    if (!terms.seekExact(term)) throw new IOException("there is no term '" + term.utf8ToString() + "'");
    return terms.postings(null, flags);
  }

  private static byte[] id(LeafReader segment) {
    return ((SegmentReader) segment).getSegmentInfo().info.getId();
  }

  /**
   * Opens the file of an index, which is closed with its reader.
   *
   * @return null when there is none for this field and one of these segments
   * @throws IOException when it is damaged; {@link #check} finds more
   */
  public static BlockMaxima open(DirectoryReader reader, String field) throws IOException {
    for (String name : List.of(FILE, NEXT, FILE)) { // the second may become the first meanwhile
      BlockMaxima opened = open(reader, field, name);
      if (opened != null) return opened;
    }
    return null;
  }

  private static BlockMaxima open(DirectoryReader reader, String field, String name) throws IOException {
    IndexInput file;
    try {
      file = reader.directory().openInput(name, IOContext.DEFAULT);
    } catch (NoSuchFileException | FileNotFoundException e) {
      return null;
    }
    BlockMaxima opened = null;
    try {
      opened = open(file, reader, field);
      if (opened != null) reader.getReaderCacheHelper().addClosedListener(key -> file.close());
      return opened;
    } finally {
      if (opened == null) file.close();
    }
  }

  private static BlockMaxima open(IndexInput file, DirectoryReader reader, String field) throws IOException {
    CodecUtil.retrieveChecksum(file); // it has an end
    file.seek(0);
    int version = CodecUtil.checkHeader(file, CODEC, MAXIMA_ONLY, VERSION);
    byte[] id = readId(file);
    if (!readText(file).utf8ToString().equals(field)) return null;
    LeafReaderContext segment = leaf(reader, id);
    return segment == null ? null : opened(segment, file, version);
  }

  private static BlockMaxima opened(LeafReaderContext segment, IndexInput file, int version) throws IOException {
    int blocks = TermMaxima.blocks(segment.reader().maxDoc());
    Map<BytesRef, Integer> rows = readRows(file);
    long firstRow = file.getFilePointer();
    long end = file.length() - CodecUtil.footerLength();
    long rowsEnd = firstRow + rows.size() * (1L + blocks);
    long[] postings = null;
    if (version > MAXIMA_ONLY) {
      postings = new long[rows.size() + 1];
      end -= (long) Long.BYTES * postings.length;
      if (end < rowsEnd) throw new CorruptIndexException("it is too short", file);
      file.seek(end);
      file.readLongs(postings, 0, postings.length);
      for (int row = 0; row < rows.size(); row++) {
        long bytes = postings[row + 1] - postings[row];
        if (bytes == 0 || bytes >= (version > WITH_OFFSETS ? 0 : BlockPostings.offsetBytes(blocks))) continue;
        throw new CorruptIndexException("postings of " + bytes + " bytes", file);
      }
      if (postings[0] != rowsEnd) throw new CorruptIndexException("postings at " + postings[0], file);
      rowsEnd = postings[rows.size()];
    }
    if (end != rowsEnd)
      throw new CorruptIndexException("it should have " + (file.length() + rowsEnd - end) + " bytes", file);
    return new BlockMaxima(file, segment, rows, firstRow, postings, blocks, version);
  }

  private static Map<BytesRef, Integer> readRows(IndexInput file) throws IOException {
    Map<BytesRef, Integer> rows = new LinkedHashMap<>();
    int count = file.readVInt();
    if (count < 0 || count > file.length()) throw new CorruptIndexException(count + " terms", file);
    for (int row = 0; row < count; row++) rows.put(readText(file), row);
    return rows;
  }

  private long row(int number) {
    return firstRow + number * (1L + TermMaxima.blocks(segment.reader().maxDoc()));
  }

  /** The same for one thread: others must not read postings with it. */
  public BlockMaxima forThread() {
    return new BlockMaxima(file.clone(), segment, rows, firstRow, postings, blocks, version);
  }

  public boolean isOf(LeafReaderContext leaf) {
    return leaf == segment;
  }

  /** Whether the file has the postings of a term. */
  public boolean hasPostings(BytesRef term) {
    Integer row = rows.get(term);
    return row != null && hasPostings(row);
  }

  /** Whether the file has a term. */
  public boolean has(BytesRef term) {
    return rows.containsKey(term);
  }

  /**
   * The maxima of a term in 7 bits, which are read from its postings where the file does not have it.
   *
   * @param found stands at it, in the segment
   */
  public TermMaxima of(TermsEnum found) throws IOException {
    Integer row = rows.get(found.term());
    TermMaxima own = row == null ? TermMaxima.read(found.postings(null, PostingsEnum.FREQS), blocks) : of(row);
    return own.inSevenBits();
  }

  private TermMaxima of(int row) throws IOException {
    byte shift = shift(row);
    byte[] maxima = new byte[blocks];
    file.readBytes(maxima, 0, blocks);
    if (shift != HALVES && !hasPostings(row)) return new TermMaxima(maxima, shift);
    if (version <= WITH_OFFSETS) {
      byte[] offsets = readBehind(row, BlockPostings.offsetBytes(blocks));
      return new TermMaxima(maxima, shift, offsets, BlockPostings.wholeWidth(shift));
    }
    boolean halves = shift == HALVES;
    byte[] sizes = halves ? BlockPostings.takeSizes(maxima) : readBehind(row, blocks);
    byte[] offsets = BlockPostings.offsets(maxima, sizes);
    long bytes = BlockPostings.length(offsets, blocks) + (halves ? 0 : blocks);
    if (bytes != postings[row + 1] - postings[row]) {
      throw new CorruptIndexException("blocks of " + bytes + " bytes", file);
    }
    return halves ? new TermMaxima(maxima, 0, offsets, BlockPostings.HALF)
                  : new TermMaxima(maxima, shift, offsets, BlockPostings.wholeWidth(shift));
  }

  private boolean hasPostings(int row) {
    return postings != null && postings[row] < postings[row + 1];
  }

  /** The bytes behind the blocks of a term. */
  private byte[] readBehind(int row, int length) throws IOException {
    byte[] read = new byte[length];
    file.seek(Math.max(0, postings[row + 1] - length));
    file.readBytes(read, 0, length);
    return read;
  }

  private byte shift(int row) throws IOException {
    file.seek(row(row));
    byte shift = file.readByte();
    int least = version > WITH_OFFSETS ? HALVES : 0;
    if (shift < least || shift > TermMaxima.LARGEST_SHIFT) throw new CorruptIndexException("a shift", file);
    return shift;
  }

  /**
   * The postings of a term; null where the file does not have them.
   *
   * @param maxima of the term
   */
  public TermPostings postings(BytesRef term, TermMaxima maxima) {
    return blockPostings(term, maxima);
  }

  private BlockPostings blockPostings(BytesRef term, TermMaxima maxima) {
    return maxima.offsets == null ? null : new BlockPostings(file, postings[rows.get(term)], maxima);
  }

  /**
   * Compares all of the file with the postings.
   *
   * @throws IOException when they differ
   */
  public void check(String field) throws IOException {
    CodecUtil.checksumEntireFile(file);
    Terms terms = segment.reader().terms(field);
    TermsEnum each = terms.iterator();
    List<BytesRef> kept = kept(terms, segment.reader().maxDoc(), version);
    if (!kept.equals(List.copyOf(rows.keySet()))) throw new IOException(FILE + " has other terms");
    BlockMaxima own = forThread();
    for (BytesRef term : rows.keySet()) {
      TermMaxima right = TermMaxima.read(postings(each, term, PostingsEnum.FREQS), blocks);
      TermMaxima written = own.of(rows.get(term));
      BlockPostings postings = own.blockPostings(term, written);
      if (right.shift() == written.shift() && Arrays.equals(right.maxima, written.maxima)
          && (postings != null) == (this.postings != null && BlockPostings.wholeWidth(right.shift()) > 0)
          && (postings == null || postings.equal(each.postings(null, PostingsEnum.FREQS)))) {
        continue;
      }
      throw new IOException(FILE + " has other impacts of '" + term.utf8ToString() + "'");
    }
  }
}
