package io.compneg;

import io.compneg.QueryPlan.Contribution;
import io.compneg.QueryPlan.QueryTerm;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.Term;
import org.apache.lucene.index.Terms;
import org.apache.lucene.index.TermsEnum;

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
   * Opens the terms of a plan in a segment, and lets the scorer enter it.
   *
   * @return false when no document of the segment can match
   */
  static boolean openAll(QueryPlan plan, String field, LeafReaderContext leaf, WindowScorer scorer) throws IOException {
    List<TermCursor> positives = new ArrayList<>();
    List<TermCursor> negatives = new ArrayList<>();
    Terms dictionary = Terms.getTerms(leaf.reader(), field);
    TermsEnum found = dictionary.iterator();
    for (QueryTerm term : plan.terms) {
      Term indexed = new Term(field, term.text());
      if (!found.seekExact(indexed.bytes())) continue;
      ImpactPostings postings =
          LuceneLine.current().postings(found.postings(null, PostingsEnum.FREQS), leaf.reader(), indexed);
      BlockMaxImpacts maxima = term.positive() ? new BlockMaxImpacts(found.impacts(PostingsEnum.FREQS)) : null;
      double density = (double) found.docFreq() / leaf.reader().maxDoc();
      (term.positive() ? positives : negatives).add(new TermCursor(term, postings, maxima, density));
    }
    scorer.enterSegment(leaf, positives, negatives);
    return !positives.isEmpty();
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
