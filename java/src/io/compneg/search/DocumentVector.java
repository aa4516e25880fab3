package io.compneg.search;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.compneg.index.Json;
import java.io.IOException;
import org.apache.lucene.index.IndexReader;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.ReaderUtil;
import org.apache.lucene.index.Terms;
import org.apache.lucene.index.TermsEnum;

/** The terms and impacts of a document: its term vector if the index has one, otherwise found in the postings. */
final class DocumentVector {
  private DocumentVector() {}

  static ObjectNode of(IndexReader reader, String field, int doc) throws IOException {
    LeafReaderContext leaf = reader.leaves().get(ReaderUtil.subIndex(doc, reader.leaves()));
    Terms stored = leaf.reader().termVectors().get(doc - leaf.docBase, field);
    ObjectNode vector = Json.MAPPER.createObjectNode();
    if (stored != null) {
      add(stored, 0, vector);
    } else if (leaf.reader().terms(field) != null) {
      add(leaf.reader().terms(field), doc - leaf.docBase, vector);
    }
    return vector;
  }

  /** Adds the terms that have the document. A term vector is an index of one document, 0. */
  private static void add(Terms terms, int doc, ObjectNode vector) throws IOException {
    TermsEnum each = terms.iterator();
    PostingsEnum postings = null;
    while (each.next() != null) {
      postings = each.postings(postings, PostingsEnum.FREQS);
      if (postings.advance(doc) == doc) vector.put(each.term().utf8ToString(), postings.freq());
    }
  }
}
