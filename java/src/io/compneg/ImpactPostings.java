package io.compneg;

import java.io.IOException;
import org.apache.lucene.index.LeafReader;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.DocIdSetIterator;

/**
 * The postings of a term in one segment, read forward only, one after the other.
 *
 * <p>A line of Lucene that reads postings in bulk overrides the two methods that read; see {@link LuceneLine}.
 */
class ImpactPostings {
  final PostingsEnum postings;
  private final LeafReader segment;
  private final Term term;

  /**
   * Wraps the postings of a term.
   *
   * @param postings with frequencies, and before their first document
   */
  ImpactPostings(PostingsEnum postings, LeafReader segment, Term term) {
    this.postings = postings;
    this.segment = segment;
    this.term = term;
  }

  /** Opens a term in a segment; null when the segment lacks it. */
  static ImpactPostings open(LeafReader segment, Term term) throws IOException {
    PostingsEnum postings = segment.postings(term, PostingsEnum.FREQS);
    return postings == null ? null : LuceneLine.current().postings(postings, segment, term);
  }

  /** The document that comes next; −1 before the first. */
  final int docId() {
    return postings.docID();
  }

  /** How many documents have the term. */
  final long count() {
    return postings.cost();
  }

  /**
   * Reads the postings of {@code [from, to)} into the arrays, the documents as offsets from {@code from}.
   *
   * @return how many there are
   */
  int read(int from, int to, int[] offsets, int[] impacts) throws IOException {
    int count = 0;
    for (int doc = enter(from); doc < to; doc = postings.nextDoc()) {
      offsets[count] = doc - from;
      impacts[count++] = postings.freq();
    }
    return count;
  }

  /**
   * Reads the postings of {@code [from, to)} and adds {@code factor · impact} to the sum of each document, which is at
   * its offset from {@code from}.
   *
   * @return how many there are
   */
  int addTo(int from, int to, double factor, double[] sums) throws IOException {
    int count = 0;
    for (int doc = enter(from); doc < to; doc = postings.nextDoc(), count++)
      sums[doc - from] += factor * postings.freq();
    return count;
  }

  /**
   * Looks documents up and writes those that have the term.
   *
   * @param documents ascending, as offsets from {@code from}
   * @return how many have the term
   */
  final int lookUp(int from, int[] documents, int length, int[] offsets, int[] impacts) throws IOException {
    int count = 0;
    int doc = postings.docID();
    for (int i = 0; i < length; i++) {
      int target = from + documents[i];
      if (doc < target) {
        doc = postings.advance(target);
        if (doc == DocIdSetIterator.NO_MORE_DOCS) break;
      }
      if (doc == target) {
        offsets[count] = documents[i];
        impacts[count++] = postings.freq();
      }
    }
    return count;
  }

  /** Moves to the first posting from this document on, unless it is there or beyond; returns its document. */
  final int enter(int from) throws IOException {
    return postings.docID() < from ? postings.advance(from) : postings.docID();
  }

  /** The impact in one document that has the term, read apart from these postings. */
  final int impactIn(int doc) throws IOException {
    PostingsEnum own = segment.postings(term, PostingsEnum.FREQS);
    own.advance(doc);
    return own.freq();
  }
}
