package io.compneg;

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
 * TermMaxima} of the frequent terms. Lucene's own are of blocks of 128 postings, which for most terms span too many
 * documents to tell the good ones from the others.
 *
 * <p>A term with fewer postings than the segment has blocks is not in the file. Its postings are read instead, which
 * takes no longer. So the file has at most one byte for a posting.
 *
 * <p>The file names its segment by the id that Lucene gave it. Deletions leave the maxima upper bounds. A merge makes
 * another segment, for which the file says nothing; it is searched with Lucene's maxima, as is an index without a file.
 *
 * <p>Source: Mallia, Suel and Tonellotto, Faster Learned Sparse Retrieval with Block-Max Pruning, SIGIR 2024.
 */
final class BlockMaxima {
  static final String FILE = "compneg.maxima";
  static final String UNFINISHED = FILE + ".tmp";
  private static final String CODEC = "CompnegBlockMaxima";
  private static final int VERSION = 1;

  private final IndexInput file;
  private final LeafReaderContext segment;
  private final Map<BytesRef, Integer> rows;
  private final long firstRow;
  private final int firstBlock;
  final int blocks;

  private BlockMaxima(IndexInput file, LeafReaderContext segment, Map<BytesRef, Integer> rows, long firstRow,
      int firstBlock, int blocks) {
    this.file = file;
    this.segment = segment;
    this.rows = rows;
    this.firstRow = firstRow;
    this.firstBlock = firstBlock;
    this.blocks = blocks;
  }

  /** Writes the file of a segment. It is there as a whole or not at all. */
  static void write(LeafReader segment, String field, Directory directory) throws IOException, InterruptedException {
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
      for (BytesRef term : kept) {
        if (Thread.interrupted()) throw new InterruptedException();
        TermMaxima maxima = read(terms, term, blocks);
        out.writeByte((byte) maxima.shift);
        out.writeBytes(maxima.maxima, blocks);
      }
      CodecUtil.writeFooter(out);
    }
    directory.sync(List.of(UNFINISHED));
    directory.rename(UNFINISHED, FILE);
    directory.syncMetaData();
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
    if (!terms.seekExact(term)) throw new IOException("there is no term '" + term.utf8ToString() + "'");
    return TermMaxima.read(terms.postings(null, PostingsEnum.FREQS), 0, blocks);
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
  static BlockMaxima open(DirectoryReader reader, String field) throws IOException {
    IndexInput file;
    try {
      file = reader.directory().openInput(FILE, IOContext.DEFAULT);
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
    CodecUtil.checkHeader(file, CODEC, VERSION, VERSION);
    byte[] id = new byte[StringHelper.ID_LENGTH];
    file.readBytes(id, 0, id.length);
    if (!readText(file).utf8ToString().equals(field)) return null;
    for (LeafReaderContext leaf : reader.leaves()) {
      if (Arrays.equals(id, id(leaf.reader()))) return opened(leaf, file);
    }
    return null;
  }

  private static BlockMaxima opened(LeafReaderContext segment, IndexInput file) throws IOException {
    int blocks = TermMaxima.blocks(segment.reader().maxDoc());
    Map<BytesRef, Integer> rows = readRows(file);
    BlockMaxima opened = new BlockMaxima(file, segment, rows, file.getFilePointer(), 0, blocks);
    long length = opened.row(rows.size()) + CodecUtil.footerLength();
    if (file.length() != length) throw new CorruptIndexException("it should have " + length + " bytes", file);
    return opened;
  }

  private static Map<BytesRef, Integer> readRows(IndexInput file) throws IOException {
    Map<BytesRef, Integer> rows = new LinkedHashMap<>();
    int count = file.readVInt();
    for (int row = 0; row < count; row++) rows.put(readText(file), row);
    return rows;
  }

  private long row(int number) {
    return firstRow + number * (1L + TermMaxima.blocks(segment.reader().maxDoc()));
  }

  /** Those of the documents {@code [from, to)} alone, where {@code from} begins a block. */
  BlockMaxima range(int from, int to) {
    int block = from / DocumentWindow.BLOCK;
    return new BlockMaxima(file, segment, rows, firstRow, block, TermMaxima.blocks(to) - block);
  }

  boolean isOf(LeafReaderContext leaf) {
    return leaf == segment;
  }

  /**
   * The maxima of a term.
   *
   * @param found stands at it, in the segment
   */
  TermMaxima of(TermsEnum found) throws IOException {
    Integer row = rows.get(found.term());
    if (row == null) return TermMaxima.read(found.postings(null, PostingsEnum.FREQS), firstBlock, blocks);
    IndexInput own = file.clone();
    own.seek(row(row));
    TermMaxima maxima = new TermMaxima(firstBlock, blocks);
    maxima.shift = own.readByte();
    if (maxima.shift < 0 || maxima.shift > TermMaxima.LARGEST_SHIFT) throw new CorruptIndexException("a shift", file);
    own.skipBytes(firstBlock);
    own.readBytes(maxima.maxima, 0, blocks);
    return maxima;
  }

  /**
   * Compares all of the file with the postings.
   *
   * @throws IOException when they differ
   */
  void check(String field) throws IOException {
    CodecUtil.checksumEntireFile(file);
    Terms terms = segment.reader().terms(field);
    TermsEnum each = terms.iterator();
    if (!kept(terms, blocks).equals(List.copyOf(rows.keySet()))) throw new IOException(FILE + " has other terms");
    for (BytesRef term : rows.keySet()) {
      TermMaxima right = read(each, term, blocks);
      TermMaxima written = of(each);
      if (right.shift == written.shift && Arrays.equals(right.maxima, written.maxima)) continue;
      throw new IOException(FILE + " has other impacts of '" + term.utf8ToString() + "'");
    }
  }
}
