package io.compneg;

import io.compneg.QueryPlan.Contribution;
import io.compneg.QueryPlan.QueryTerm;
import java.io.IOException;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.Weight;

/** A term of the query in one segment: its postings, read forward only, and its maximum impact in each window. */
final class TermCursor {
  final Contribution[] contributions;

  final ImpactPostings postings;

  /** The share of the segment's documents that have the term. */
  final double density;

  /** No impact of the term in the current window is larger; 0 when it has none there. */
  int windowMaxImpact;

  /** How much lower the upper bound of the tree would be in the current window without the term. */
  double boundShare;

  /** By what the cursors are sorted at the moment. */
  double sortKey;

  /** Whether the term is essential in the current window. */
  boolean essential;

  private final BlockMaxImpacts maxImpacts; // null for a term that only lowers scores: 0 is its bound

  private TermCursor(QueryTerm term, ImpactPostings postings, BlockMaxImpacts maxImpacts, double density) {
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
    ImpactPostings postings = ImpactPostings.open(leaf.reader(), indexed);
    if (postings == null) return null;
    BlockMaxImpacts maxImpacts =
        weight == null ? null : new BlockMaxImpacts(weight.scorer(leaf), leaf.reader(), indexed);
    double density = (double) postings.count() / leaf.reader().maxDoc();
    return new TermCursor(term, postings, maxImpacts, density);
  }

  boolean contributesTo(int accumulator) {
    for (Contribution contribution : contributions) {
      if (contribution.accumulator == accumulator) return true;
    }
    return false;
  }

  /** Sets {@link #windowMaxImpact} for the documents {@code [from, to)}. Windows come in ascending order. */
  void enterWindow(int from, int to) throws IOException {
    windowMaxImpact = postings.docId() >= to ? 0 : maxImpacts.upperBound(from, to);
  }
}
