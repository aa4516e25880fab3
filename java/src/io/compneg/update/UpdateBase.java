package io.compneg.update;

import io.compneg.index.DocumentReader;
import io.compneg.index.ExternalIds;
import io.compneg.index.LineScanner;
import io.compneg.index.SourceHash;
import java.io.Closeable;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.DocValuesType;
import org.apache.lucene.index.FieldInfo;
import org.apache.lucene.index.FieldInfos;
import org.apache.lucene.index.IndexOptions;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.MultiBits;
import org.apache.lucene.index.MultiTerms;
import org.apache.lucene.index.NumericDocValues;
import org.apache.lucene.index.ReaderUtil;
import org.apache.lucene.util.Bits;
import org.apache.lucene.util.BytesRef;
import org.apache.lucene.util.FixedBitSet;

/**
 * The index that an update begins with: which of the given documents it has, and which of these are the same. An update
 * takes each id once, so its threads may write the documents in any order.
 */
final class UpdateBase implements Closeable {
  private static final byte NOTHING = 0; // that can be read as a document
  private static final byte NEW = 1;
  private static final byte CHANGED = 2;
  private static final byte UNCHANGED = 3;
  private static final byte REPEATED = 4; // given before in this update

  private final DirectoryReader reader;
  private final FixedBitSet given; // documents of this index
  private final Set<BytesRef> others = new HashSet<>(); // ids given that this index does not have
  private int sought; // so many documents have been looked at for the missing ones

  UpdateBase(DirectoryReader reader) {
    this.reader = reader;
    this.given = new FixedBitSet(Math.max(1, reader.maxDoc()));
  }

  DirectoryReader reader() {
    return reader;
  }

  /**
   * Why an index that stock Anserini built cannot be updated as an index of impacts; null if it can.
   *
   * <p>Its fields must be those that {@code DocumentMaker} makes.
   */
  String unfit(String field) throws IOException {
    FieldInfos fields = FieldInfos.getMergedFieldInfos(reader);
    FieldInfo impacts = fields.fieldInfo(field);
    FieldInfo id = fields.fieldInfo(ExternalIds.FIELD);
    if (impacts == null || id == null) return "has no field " + (id == null ? ExternalIds.FIELD : field);
    IndexOptions options = impacts.getIndexOptions();
    if (options.compareTo(IndexOptions.DOCS_AND_FREQS) > 0) return "has positions of terms";
    boolean found = id.getIndexOptions() == IndexOptions.DOCS && id.getDocValuesType() == DocValuesType.BINARY;
    if (options != IndexOptions.DOCS_AND_FREQS || !impacts.hasNorms() || !found)
      return "has other fields than Anserini's";
    return MultiTerms.getTerms(reader, field) == null ? "has no document with a term" : null;
  }

  /**
   * Compares the documents of a block with those of the index.
   *
   * @param sources what would be stored, as many lines
   * @param remembers whether an id that is new here is given before if it comes again
   * @return for each line, what it holds
   */
  byte[] compare(DocumentReader lines, byte[] sources, boolean remembers) throws IOException {
    LineScanner source = new LineScanner(sources);
    MessageDigest hasher = SourceHash.hasher();
    List<BytesRef> ids = new ArrayList<>(); // null for none
    List<Long> hashes = new ArrayList<>();
    while (lines.nextLine()) {
      source.next();
      BytesRef id = null;
      try {
        if (!lines.blank()) lines.read();
        if (!lines.blank()) id = new BytesRef(lines.id());
      } catch (DocumentReader.BadDocument bad) {
        // it is reported when it is indexed
      }
      ids.add(id);
      hashes.add(id == null ? 0 : source.hash(hasher));
    }
    byte[] found = taken(ids, remembers);
    compare(find(ids), hashes, found);
    return found;
  }

  /** Looks ids up. They are given from now on, so that the answer to a later document is the same in every update. */
  byte[] take(List<BytesRef> ids) throws IOException {
    return taken(ids, true);
  }

  private byte[] taken(List<BytesRef> ids, boolean remembers) throws IOException {
    int[] docs = find(ids);
    byte[] found = new byte[docs.length];
    for (int i = 0; i < docs.length; i++) {
      if (ids.get(i) == null) continue;
      boolean again = docs[i] < 0 ? others.contains(ids.get(i)) : given.getAndSet(docs[i]);
      if (docs[i] < 0 && remembers) others.add(ids.get(i));
      found[i] = again ? REPEATED : docs[i] < 0 ? NEW : CHANGED;
    }
    return found;
  }

  /** The next ids with an ending of live documents that have not been given; empty at the end. */
  List<String> missing(String ending, int most) throws IOException {
    Bits live = MultiBits.getLiveDocs(reader);
    List<String> missing = new ArrayList<>();
    while (missing.isEmpty() && sought < reader.maxDoc()) {
      int[] docs = IntStream.range(sought, Math.min(reader.maxDoc(), sought + most))
                       .filter(doc -> !given.get(doc) && (live == null || live.get(doc)))
                       .toArray();
      sought += Math.min(most, reader.maxDoc() - sought);
      for (BytesRef id : new ExternalIds(reader).of(docs)) {
        if (id.utf8ToString().endsWith(ending)) missing.add(id.utf8ToString());
      }
    }
    return missing;
  }

  private int[] find(List<BytesRef> ids) throws IOException {
    BytesRef[] asked = ids.stream().map(id -> id == null ? new BytesRef() : id).toArray(BytesRef[] ::new);
    return ExternalIds.find(reader, asked);
  }

  private void compare(int[] docs, List<Long> hashes, byte[] found) throws IOException {
    long[] order = new long[docs.length]; // the document above its place
    for (int i = 0; i < docs.length; i++) order[i] = (long) docs[i] << 32 | i;
    Arrays.sort(order);
    LeafReaderContext leaf = null;
    NumericDocValues known = null;
    for (long each : order) {
      int doc = (int) (each >> 32);
      int i = (int) each;
      if (doc < 0 || found[i] != CHANGED) continue;
      if (leaf == null || doc >= leaf.docBase + leaf.reader().maxDoc()) {
        leaf = reader.leaves().get(ReaderUtil.subIndex(doc, reader.leaves()));
        known = leaf.reader().getNumericDocValues(SourceHash.FIELD);
      }
      boolean hashed = known != null && known.advanceExact(doc - leaf.docBase);
      if (hashed ? known.longValue() == hashes.get(i) : isStored(doc, hashes.get(i))) found[i] = UNCHANGED;
    }
  }

  /** Whether a document without a hash, as Anserini writes them, has a stored source of that hash. */
  private boolean isStored(int doc, long hash) throws IOException {
    String raw = reader.storedFields().document(doc, Set.of("raw")).get("raw");
    if (raw == null) return false;
    MessageDigest hasher = SourceHash.hasher();
    hasher.update(raw.getBytes(StandardCharsets.UTF_8));
    return SourceHash.of(hasher) == hash;
  }

  @Override
  public void close() throws IOException {
    reader.close();
  }
}
