package io.compneg;

import io.compneg.QueryPlan.Contribution;
import io.compneg.QueryPlan.QueryTerm;
import java.io.IOException;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.search.Weight;

/** A term of the query in one segment: its postings, read forward only, and its maximum impact in each window. */
final class TermCursor {
  final Contribution[] contributions;

  /** Postings a window, on average: the cost of reading the term instead of looking documents up in it. */
  final double density;

  /** No impact of the term in the current window is larger; 0 when it has none there. */
  int windowMaxImpact;

  /** How much lower the upper bound of the tree would be in the current window without the term. */
  double boundShare;

  /** By what the cursors are sorted at the moment. */
  double sortKey;

  /** Whether the term is essential in the current window. */
  boolean essential;

  private final PostingsEnum postings;
  private final BlockMaxImpacts maxImpacts; // null for a term that only lowers scores: 0 is its bound

  private TermCursor(QueryTerm term, PostingsEnum postings, BlockMaxImpacts maxImpacts, double density) {
    this.contributions = term.contributions().toArray(new Contribution[0]);
    this.postings = postings;
    this.maxImpacts = maxImpacts;
    this.density = density;
  }

  /**
   * Opens the term in a segment.
   *
   * @param weight the term's weight under an impact similarity with boost 1, or null for a term that only lowers scores
   * @return null when the segment lacks the term
   */
  static TermCursor open(QueryTerm term, String field, Weight weight, LeafReaderContext leaf) throws IOException {
    Term indexed = new Term(field, term.text());
    PostingsEnum postings = leaf.reader().postings(indexed, PostingsEnum.FREQS);
    if (postings == null) return null;
    BlockMaxImpacts maxImpacts =
        weight == null ? null : new BlockMaxImpacts(weight.scorer(leaf), leaf.reader(), indexed);
    double density = (double) postings.cost() * WindowScorer.WINDOW / leaf.reader().maxDoc();
    return new TermCursor(term, postings, maxImpacts, density);
  }

  boolean contributesTo(int accumulator) {
    for (Contribution contribution : contributions) {
      if (contribution.accumulator == accumulator) return true;
    }
    return false;
  }

  int docId() {
    return postings.docID();
  }

  /** Sets {@link #windowMaxImpact} for the documents {@code [from, to)}. Windows come in ascending order. */
  void enterWindow(int from, int to) throws IOException {
    windowMaxImpact = postings.docID() >= to ? 0 : maxImpacts.upperBound(from, to);
  }

  /**
   * Reads the postings of {@code [from, to)} into the arrays, the documents as offsets from {@code from}.
   *
   * @return how many there are
   */
  int read(int from, int to, int[] offsets, int[] impacts) throws IOException {
    int count = 0;
    int doc = postings.docID();
    if (doc < from) doc = postings.advance(from);
    for (; doc < to; doc = postings.nextDoc()) {
      offsets[count] = doc - from;
      impacts[count++] = postings.freq();
    }
    return count;
  }

  /**
   * Reads the postings of {@code [from, to)} straight into the sums of an accumulator.
   *
   * @param contribution the only one of the term; it needs no table
   * @return how many there are
   */
  int readInto(int from, int to, Contribution contribution, double[] sums) throws IOException {
    double factor = contribution.factor; // in locals: a field would be loaded anew for every posting
    double rounding = contribution.rounding;
    int count = 0;
    int doc = postings.docID();
    if (doc < from) doc = postings.advance(from);
    if (contribution.power == 1) {
      for (; doc < to; doc = postings.nextDoc(), count++) {
        sums[doc - from] += Contribution.linear(factor, postings.freq());
      }
    } else {
      for (; doc < to; doc = postings.nextDoc(), count++) {
        sums[doc - from] += Contribution.squareRoot(factor, rounding, postings.freq());
      }
    }
    return count;
  }

  /**
   * Looks documents up and writes those that have the term.
   *
   * @param documents ascending, as offsets from {@code from}
   * @return how many have the term
   */
  int lookUp(int from, int[] documents, int length, int[] offsets, int[] impacts) throws IOException {
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
}
