package io.compneg.index;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import org.apache.lucene.index.BinaryDocValues;
import org.apache.lucene.index.IndexReader;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.MultiBits;
import org.apache.lucene.index.MultiTerms;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.ReaderUtil;
import org.apache.lucene.index.StoredFields;
import org.apache.lucene.index.Terms;
import org.apache.lucene.index.TermsEnum;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.util.Bits;
import org.apache.lucene.util.BytesRef;

/**
 * Maps Lucene's document numbers to the collection's ids, as Anserini stores them, and back. One instance serves all
 * searches of an index.
 */
public final class ExternalIds {
  public static final String FIELD = "id";

  private final IndexReader reader;
  private final List<LeafReaderContext> leaves;

  public ExternalIds(IndexReader reader) {
    this.reader = reader;
    this.leaves = reader.leaves();
  }

  /** The ids of documents, which must be in ascending order. */
  public BytesRef[] of(int[] ascending) throws IOException {
    BytesRef[] ids = new BytesRef[ascending.length];
    LeafReaderContext leaf = null;
    BinaryDocValues values = null;
    StoredFields stored = reader.storedFields();
    for (int i = 0; i < ascending.length; i++) {
      int doc = ascending[i];
      if (leaf == null || doc >= leaf.docBase + leaf.reader().maxDoc()) {
        leaf = leaves.get(ReaderUtil.subIndex(doc, leaves));
        values = leaf.reader().getBinaryDocValues(FIELD);
      }
      if (values != null && values.advanceExact(doc - leaf.docBase)) {
        ids[i] = BytesRef.deepCopyOf(values.binaryValue());
      } else {
        ids[i] = new BytesRef(stored.document(doc, Set.of(FIELD)).get(FIELD));
      }
    }
    return ids;
  }

  /** The first ids that more than one document has, in ascending order. No list of all ids is in memory. */
  public static List<String> duplicates(IndexReader reader, int most) throws IOException {
    List<String> duplicates = new ArrayList<>();
    Terms terms = MultiTerms.getTerms(reader, FIELD);
    PostingsEnum postings = null;
    Bits live = MultiBits.getLiveDocs(reader);
    TermsEnum ids = terms == null ? TermsEnum.EMPTY : terms.iterator();
    for (BytesRef id = ids.next(); id != null && duplicates.size() < most; id = ids.next()) {
      postings = ids.postings(postings, PostingsEnum.NONE);
      if (nextLive(postings, live) == DocIdSetIterator.NO_MORE_DOCS) continue;
      if (nextLive(postings, live) != DocIdSetIterator.NO_MORE_DOCS) duplicates.add(id.utf8ToString());
    }
    return duplicates;
  }

  /** The numbers of the documents with these ids; −1 for an id that no document has, deleted ones aside. */
  public static int[] find(IndexReader reader, BytesRef[] ids) throws IOException {
    return Arrays.stream(find(reader, ids, true)).mapToInt(docs -> docs.length == 0 ? -1 : docs[0]).toArray();
  }

  /** The live documents with each of these ids, in ascending order. */
  public static int[][] findAll(IndexReader reader, BytesRef[] ids) throws IOException {
    return find(reader, ids, false);
  }

  private static int[][] find(IndexReader reader, BytesRef[] ids, boolean firstOnly) throws IOException {
    int[][] docs = new int[ids.length][0];
    for (LeafReaderContext leaf : reader.leaves()) {
      Terms terms = leaf.reader().terms(FIELD);
      if (terms == null) continue;
      TermsEnum indexed = terms.iterator();
      PostingsEnum postings = null;
      Bits live = leaf.reader().getLiveDocs();
      for (int i = 0; i < ids.length; i++) {
        if (firstOnly && docs[i].length > 0 || !indexed.seekExact(ids[i])) continue;
        postings = indexed.postings(postings, PostingsEnum.NONE);
        IntStream.Builder found = IntStream.builder();
        int doc = nextLive(postings, live);
        if (doc != DocIdSetIterator.NO_MORE_DOCS) found.add(leaf.docBase + doc);
        while (!firstOnly && (doc = nextLive(postings, live)) != DocIdSetIterator.NO_MORE_DOCS) {
          found.add(leaf.docBase + doc);
        }
        docs[i] = IntStream.concat(Arrays.stream(docs[i]), found.build()).toArray();
      }
    }
    return docs;
  }

  /** Whether several documents may have the same id, as far as the sizes of the segments' dictionaries tell. */
  public static boolean mayRepeat(IndexReader reader) throws IOException {
    if (reader.leaves().size() > 1) return true;
    for (LeafReaderContext leaf : reader.leaves()) {
      Terms ids = leaf.reader().terms(FIELD);
      if (ids == null || ids.size() != ids.getDocCount()) return true;
    }
    return false;
  }

  private static int nextLive(PostingsEnum postings, Bits live) throws IOException {
    int doc = postings.nextDoc();
    while (doc != DocIdSetIterator.NO_MORE_DOCS && live != null && !live.get(doc)) doc = postings.nextDoc();
    return doc;
  }
}
