package io.compneg;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.Set;
import org.apache.lucene.index.BinaryDocValues;
import org.apache.lucene.index.IndexReader;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.ReaderUtil;
import org.apache.lucene.util.BytesRef;

/** From Lucene's document numbers to the collection's ids, as Anserini stores them: doc values, else the stored field. */
final class ExternalIds {
  static final String FIELD = "id";

  private final IndexReader reader;
  private final List<LeafReaderContext> leaves;

  ExternalIds(IndexReader reader) {
    this.reader = reader;
    this.leaves = reader.leaves();
  }

  BytesRef of(int doc) {
    return of(new int[] {doc})[0];
  }

  /** The ids of documents in ascending order. */
  BytesRef[] of(int[] ascending) {
    try {
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
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
