package io.compneg.search;

import java.io.IOException;
import java.util.stream.IntStream;
import org.apache.lucene.index.IndexReader;
import org.apache.lucene.index.MultiBits;
import org.apache.lucene.index.MultiTerms;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.Terms;
import org.apache.lucene.index.TermsEnum;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.util.Bits;

/**
 * Which of Lucene's documents are passages of the same document. They share a value of a field. They are read by {@link
 * #isRead}, which may take long, for all searches of an index.
 */
final class Passages {
  private static final int CLOCK = 1 << 10; // documents between two looks at the clock

  private final int[] ofDocument; // for each passage, the first one of its document
  private final Bits live;
  private final TermsEnum documents;
  private PostingsEnum postings;
  private boolean read;
  private boolean broken; // a document is read in part

  Passages(IndexReader reader, String field) throws IOException {
    ofDocument = IntStream.range(0, reader.maxDoc()).toArray();
    Terms terms = MultiTerms.getTerms(reader, field);
    documents = terms == null ? TermsEnum.EMPTY : terms.iterator();
    live = MultiBits.getLiveDocs(reader);
  }

  /** Reads on until all is read or a time is over; returns whether all is read. */
  synchronized boolean isRead(long deadline) throws IOException {
    for (int count = 1; !read && (count % CLOCK != 0 || System.nanoTime() - deadline < 0); count++) {
      if (broken) throw new IOException("the passages of a document could not be read; open the index again");
      broken = true;
      read = documents.next() == null;
      if (!read) readDocument();
      broken = false;
    }
    return read;
  }

  private void readDocument() throws IOException {
    postings = documents.postings(postings, PostingsEnum.NONE);
    int first = -1;
    for (int doc; (doc = postings.nextDoc()) != DocIdSetIterator.NO_MORE_DOCS;) {
      if (live != null && !live.get(doc)) continue; // its document may have been replaced
      if (first < 0) first = doc;
      ofDocument[doc] = first;
    }
  }

  /** One passage that stands for all of the document that has this passage. */
  int first(int passage) {
    return ofDocument[passage];
  }
}
