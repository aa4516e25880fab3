package io.compneg;

import io.compneg.QueryPlan.PlannedTerm;
import io.compneg.QueryPlan.Slot;
import java.io.IOException;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.search.Weight;

/**
 * A term of the query in one segment: its postings, read forward only, and bounds of its impact from Lucene's
 * own block maxima.
 */
final class TermCursor {
  final Slot[] slots;

  /** Postings per window, on average: the cost of reading the term instead of looking documents up in it. */
  final double density;

  /** The largest impact in the current window; 0 when the term has none there. */
  int windowImpact;

  /** What leaving the term out of the current window would take from the tree's bound. */
  double share;

  /** By what the cursors are sorted at the moment. */
  double order;

  /** Whether documents that have only optional terms cannot win in the current window. */
  boolean optional;

  private final PostingsEnum postings;
  private final ImpactBounds bounds; // null for a term that only lowers scores: 0 bounds it

  private TermCursor(PlannedTerm term, PostingsEnum postings, ImpactBounds bounds, double density) {
    this.slots = term.slots().toArray(Slot[]::new);
    this.postings = postings;
    this.bounds = bounds;
    this.density = density;
  }

  /**
   * Opens the term in a segment.
   *
   * @param weight the term's weight under an impact similarity with boost 1, or null for a term without
   *     positive slots
   * @return null when the segment lacks the term
   */
  static TermCursor open(PlannedTerm term, String field, Weight weight, LeafReaderContext leaf) throws IOException {
    Term indexed = new Term(field, term.text());
    PostingsEnum postings = leaf.reader().postings(indexed, PostingsEnum.FREQS);
    if (postings == null) return null;
    ImpactBounds bounds = weight == null ? null : new ImpactBounds(weight.scorer(leaf), leaf.reader(), indexed);
    double density = (double) postings.cost() * WindowScorer.WINDOW / leaf.reader().maxDoc();
    return new TermCursor(term, postings, bounds, density);
  }

  boolean feeds(int channel) {
    for (Slot slot : slots) if (slot.channel == channel) return true;
    return false;
  }

  int docId() {
    return postings.docID();
  }

  /** Sets {@link #windowImpact} for the documents {@code [from, to)}. */
  void enterWindow(int from, int to) throws IOException {
    windowImpact = postings.docID() >= to ? 0 : bounds.largest(from, to);
  }

  /**
   * Reads the postings of {@code [from, to)} into the arrays, as offsets from {@code from}; returns how many.
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
   * Reads the postings of {@code [from, to)} straight into the sums of a channel, for a term with this slot
   * alone; returns how many.
   */
  int readInto(int from, int to, Slot slot, double[] sums) throws IOException {
    double factor = slot.factor; // in locals: a field would be loaded anew for every posting
    double magic = slot.magic;
    int count = 0;
    int doc = postings.docID();
    if (doc < from) doc = postings.advance(from);
    if (slot.power == 1) {
      for (; doc < to; doc = postings.nextDoc(), count++) {
        sums[doc - from] += Slot.linear(factor, postings.freq());
      }
    } else {
      for (; doc < to; doc = postings.nextDoc(), count++) {
        sums[doc - from] += Slot.squareRoot(factor, magic, postings.freq());
      }
    }
    return count;
  }

  /**
   * Looks up the ascending {@code documents} (offsets from {@code from}); writes those that have the term;
   * returns how many.
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
