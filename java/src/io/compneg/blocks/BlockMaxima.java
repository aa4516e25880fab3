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
 * <p>A term with fewer postings than the segment has blocks is not in the file. Its postings are read instead, which
 * takes no longer.
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
  private static final int MAXIMA_ONLY = 1; // a file of version 1 has no postings
  private static final int VERSION = 2;

  private final IndexInput file;
  private final LeafReaderContext segment;
  private final Map<BytesRef, Integer> rows;
  private final long firstRow;
  private final long[] postings; // where the postings of each row begin, and their end; null without postings
  public final int blocks;

  private BlockMaxima(IndexInput file, LeafReaderContext segment, Map<BytesRef, Integer> rows, long firstRow,
      long[] postings, int blocks) {
    this.file = file;
    this.segment = segment;
    this.rows = rows;
    this.firstRow = firstRow;
    this.postings = postings;
    this.blocks = blocks;
  }

  /** Writes the file of a segment, {@link #FILE} or {@link #NEXT}. The file appears atomically. */
  static void write(LeafReader segment, String field, Directory directory, String name)
      throws IOException, InterruptedException {
    int blocks = TermMaxima.blocks(segment.maxDoc());
    List<BytesRef> kept = kept(segment.terms(field), blocks);
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
        TermMaxima maxima = read(terms, kept.get(row), blocks);
        out.writeByte((byte) maxima.shift());
        out.writeBytes(maxima.maxima, blocks);
        widths[row] = BlockPostings.width(maxima.shift());
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
      seek(terms, kept.get(row));
      BlockPostings.write(terms.postings(null, PostingsEnum.FREQS), blocks, widths[row], out);
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

  /** The terms that are in the file, in the order of the segment. */
  private static List<BytesRef> kept(Terms terms, int blocks) throws IOException {
    List<BytesRef> kept = new ArrayList<>();
    TermsEnum each = terms == null ? TermsEnum.EMPTY : terms.iterator();
    for (BytesRef term = each.next(); term != null; term = each.next()) {
      if (each.docFreq() >= blocks) kept.add(BytesRef.deepCopyOf(term));
    }
    return kept;
  }

  private static TermMaxima read(TermsEnum terms, BytesRef term, int blocks) throws IOException {
    seek(terms, term);
    return TermMaxima.read(terms.postings(null, PostingsEnum.FREQS), blocks);
  }

  private static void seek(TermsEnum terms, BytesRef term) throws IOException {
    if (!terms.seekExact(term)) throw new IOException("there is no term '" + term.utf8ToString() + "'");
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
        if (bytes == 0 || bytes >= BlockPostings.offsetBytes(blocks)) continue;
        throw new CorruptIndexException("postings of " + bytes + " bytes", file);
      }
      if (postings[0] != rowsEnd) throw new CorruptIndexException("postings at " + postings[0], file);
      rowsEnd = postings[rows.size()];
    }
    if (end != rowsEnd)
      throw new CorruptIndexException("it should have " + (file.length() + rowsEnd - end) + " bytes", file);
    return new BlockMaxima(file, segment, rows, firstRow, postings, blocks);
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
    return new BlockMaxima(file.clone(), segment, rows, firstRow, postings, blocks);
  }

  public boolean isOf(LeafReaderContext leaf) {
    return leaf == segment;
  }

  /** Whether the file has the postings of a term. */
  public boolean hasPostings(BytesRef term) {
    Integer row = postings == null ? null : rows.get(term);
    return row != null && postings[row] < postings[row + 1];
  }

  /** Whether the file has a term. */
  public boolean has(BytesRef term) {
    return rows.containsKey(term);
  }

  /**
   * The maxima of a term, which are read from its postings where the file does not have it.
   *
   * @param found stands at it, in the segment
   */
  public TermMaxima of(TermsEnum found) throws IOException {
    Integer row = rows.get(found.term());
    return row == null ? TermMaxima.read(found.postings(null, PostingsEnum.FREQS), blocks) : of(row);
  }

  private TermMaxima of(int row) throws IOException {
    int shift = shift(row);
    byte[] maxima = new byte[blocks];
    file.readBytes(maxima, 0, blocks);
    if (postings == null || postings[row] == postings[row + 1]) return new TermMaxima(maxima, shift, null);
    byte[] offsets = new byte[BlockPostings.offsetBytes(blocks)];
    file.seek(postings[row + 1] - offsets.length);
    file.readBytes(offsets, 0, offsets.length);
    return new TermMaxima(maxima, shift, offsets);
  }

  private byte shift(int row) throws IOException {
    file.seek(row(row));
    byte shift = file.readByte();
    if (shift < 0 || shift > TermMaxima.LARGEST_SHIFT) throw new CorruptIndexException("a shift", file);
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
    if (!kept(terms, blocks).equals(List.copyOf(rows.keySet()))) throw new IOException(FILE + " has other terms");
    BlockMaxima own = forThread();
    for (BytesRef term : rows.keySet()) {
      TermMaxima right = read(each, term, blocks);
      TermMaxima written = own.of(rows.get(term));
      BlockPostings postings = own.blockPostings(term, written);
      if (right.shift() == written.shift() && Arrays.equals(right.maxima, written.maxima)
          && (postings != null) == (this.postings != null && BlockPostings.width(right.shift()) > 0)
          && (postings == null || postings.equal(each.postings(null, PostingsEnum.FREQS)))) {
        continue;
      }
      throw new IOException(FILE + " has other impacts of '" + term.utf8ToString() + "'");
    }
  }
}
