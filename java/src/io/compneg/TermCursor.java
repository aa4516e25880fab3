package io.compneg;

import io.compneg.QueryPlan.Contribution;
import io.compneg.QueryPlan.QueryTerm;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.lucene.index.LeafReader;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.Term;
import org.apache.lucene.index.Terms;
import org.apache.lucene.index.TermsEnum;

/** A term of the query in one segment: its postings, read forward only, and its maximum impact in each window. */
final class TermCursor {
  final Contribution[] contributions;

  final TermPostings postings;

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

  /** Whether it may raise a score. */
  final boolean positive;

  /** Null where Lucene's own are used, and for a term that only lowers scores: 0 is its bound. */
  final TermMaxima blockMaxima;

  private final BlockMaxImpacts maxImpacts; // those of Lucene

  private TermCursor(QueryTerm term, TermPostings postings, int documents, LeafReader segment, TermMaxima maxima,
      BlockMaxImpacts maxImpacts) {
    contributions = term.contributions().toArray(new Contribution[0]);
    positive = term.positive();
    this.postings = postings;
    density = (double) documents / segment.maxDoc();
    blockMaxima = positive ? maxima : null;
    this.maxImpacts = maxImpacts;
  }

  /**
   * Opens the terms of a plan that a segment has.
   *
   * @param maxima the block maxima of the segment; null for those of Lucene
   * @param bounded whether all terms need block maxima; else those have them that the file has
   */
  static List<TermCursor> openAll(QueryPlan plan, String field, LeafReader segment, BlockMaxima maxima, boolean bounded)
      throws IOException {
    List<TermCursor> cursors = new ArrayList<>();
    TermsEnum found = Terms.getTerms(segment, field).iterator();
    for (QueryTerm term : plan.terms) {
      Term indexed = new Term(field, term.text());
      TermMaxima own = maxima == null ? null : maxima.lastRead(indexed.bytes());
      if (own == null || own.offsets == null) {
        if (!found.seekExact(indexed.bytes())) continue;
        boolean known = maxima != null
            && (maxima.hasPostings(indexed.bytes()) || term.positive() && (bounded || maxima.has(indexed.bytes())));
        own = known ? maxima.of(found) : null;
      }
      if (own != null && own.offsets != null) {
        cursors.add(new TermCursor(term, maxima.postings(indexed.bytes(), own), own.documents, segment, own, null));
      } else {
        BlockMaxImpacts impacts =
            own == null && term.positive() ? new BlockMaxImpacts(found.impacts(PostingsEnum.FREQS)) : null;
        TermPostings postings =
            LuceneLine.current().postings(found.postings(null, PostingsEnum.FREQS), segment, indexed);
        cursors.add(new TermCursor(term, postings, found.docFreq(), segment, own, impacts));
      }
    }
    return cursors;
  }

  /** Whether it adds to one of the accumulators {@code [from, to)}. */
  boolean contributesTo(int from, int to) {
    for (Contribution contribution : contributions) {
      if (from <= contribution.accumulator && contribution.accumulator < to) return true;
    }
    return false;
  }

  /** Sets {@link #windowMaxImpact} for the documents of a window; without block maxima it is one run. */
  void enterWindow(DocumentWindow window) throws IOException {
    if (postings.isPast(window.end())) {
      windowMaxImpact = 0;
    } else if (blockMaxima != null) {
      windowMaxImpact = blockMaxima.upperBound(window);
    } else {
      windowMaxImpact = maxImpacts.upperBound(window.starts[0], window.end());
    }
  }

  /** Reads the postings of a window and adds what they contribute; returns how many. */
  int add(DocumentWindow window, double[][] accumulators) throws IOException {
    return postings.add(window, contributions, accumulators);
  }
}
