package io.compneg;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.lucene.index.BinaryDocValues;
import org.apache.lucene.index.IndexReader;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.MultiTerms;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.ReaderUtil;
import org.apache.lucene.index.Terms;
import org.apache.lucene.index.TermsEnum;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.util.Bits;
import org.apache.lucene.util.BytesRef;

/**
 * Maps Lucene's document numbers to the collection's ids, as Anserini stores them, and orders documents by these ids,
 * which decides ties.
 *
 * <p>A few ties are decided by looking the ids up. Where there are many (short queries, coarse impacts), the rank of
 * every id is read once from the index's sorted id terms, 4 bytes a document. One instance serves all searches of an
 * index.
 */
final class ExternalIds {
  static final String FIELD = "id";

  /** Ranking all ids takes about as long as this share of comparisons by look-up. */
  private static final int DOCUMENTS_PER_COMPARISON = 16;

  private final IndexReader reader;
  private final List<LeafReaderContext> leaves;
  private final AtomicInteger comparisons = new AtomicInteger();
  private volatile int[] ranks;

  ExternalIds(IndexReader reader) {
    this.reader = reader;
    this.leaves = reader.leaves();
  }

  /** Compares the ids of two documents. */
  int compare(int docA, int docB) {
    try {
      if (ranks == null && comparisons.incrementAndGet() > reader.maxDoc() / DOCUMENTS_PER_COMPARISON) rankAll();
      return ranks == null ? id(docA).compareTo(id(docB)) : Integer.compare(ranks[docA], ranks[docB]);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** The ids of documents, which must be in ascending order. */
  BytesRef[] of(int[] ascending) throws IOException {
    BytesRef[] ids = new BytesRef[ascending.length];
    LeafReaderContext leaf = null;
    BinaryDocValues values = null;
    for (int i = 0; i < ascending.length; i++) {
      int doc = ascending[i];
      if (leaf == null || doc >= leaf.docBase + leaf.reader().maxDoc()) {
        leaf = leaves.get(ReaderUtil.subIndex(doc, leaves));
        values = leaf.reader().getBinaryDocValues(FIELD);
      }
      if (values != null && values.advanceExact(doc - leaf.docBase)) {
        ids[i] = BytesRef.deepCopyOf(values.binaryValue());
      } else {
        ids[i] = new BytesRef(reader.storedFields().document(doc, Set.of(FIELD)).get(FIELD));
      }
    }
    return ids;
  }

  /** The numbers of the documents with these ids; −1 for an id that no document has, deleted ones aside. */
  static int[] find(IndexReader reader, BytesRef[] ids) throws IOException {
    int[] docs = new int[ids.length];
    Arrays.fill(docs, -1);
    for (LeafReaderContext leaf : reader.leaves()) {
      Terms terms = leaf.reader().terms(FIELD);
      if (terms == null) continue;
      TermsEnum indexed = terms.iterator();
      PostingsEnum postings = null;
      Bits live = leaf.reader().getLiveDocs();
      for (int i = 0; i < ids.length; i++) {
        if (docs[i] >= 0 || !indexed.seekExact(ids[i])) continue;
        postings = indexed.postings(postings, PostingsEnum.NONE);
        int doc = postings.nextDoc();
        while (doc != DocIdSetIterator.NO_MORE_DOCS && live != null && !live.get(doc)) doc = postings.nextDoc();
        if (doc != DocIdSetIterator.NO_MORE_DOCS) docs[i] = leaf.docBase + doc;
      }
    }
    return docs;
  }

  private BytesRef id(int doc) throws IOException {
    return of(new int[] {doc})[0];
  }

  private synchronized void rankAll() throws IOException {
    Terms terms = MultiTerms.getTerms(reader, FIELD);
    if (ranks != null) return;
    if (terms == null) { // compare by look-up for good
      comparisons.set(Integer.MIN_VALUE);
      return;
    }
    int[] found = new int[reader.maxDoc()];
    TermsEnum ids = terms.iterator();
    PostingsEnum postings = null;
    for (int rank = 0; ids.next() != null; rank++) {
      postings = ids.postings(postings, PostingsEnum.NONE);
      for (int doc; (doc = postings.nextDoc()) != DocIdSetIterator.NO_MORE_DOCS;) found[doc] = rank;
    }
    ranks = found;
  }
}
