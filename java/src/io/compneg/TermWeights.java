package io.compneg;

import io.anserini.search.similarity.ImpactSimilarity;
import io.compneg.QueryPlan.QueryTerm;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.lucene.index.IndexReaderContext;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.ScoreMode;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.search.Weight;

/** Lucene's weights of a query's terms in one index, for the block maxima of their impacts. */
final class TermWeights {
  private final String field;
  private final Map<String, Weight> weights = new HashMap<>(); // of the terms that may raise a score

  /** Looks the terms up. The block maxima are impacts, whatever similarity the caller's own searcher has. */
  TermWeights(IndexReaderContext index, String field, QueryPlan plan) throws IOException {
    this.field = field;
    IndexSearcher searcher = new IndexSearcher(index);
    searcher.setSimilarity(new ImpactSimilarity());
    searcher.setQueryCache(null);
    for (QueryTerm term : plan.terms) {
      if (!term.positive()) continue;
      Weight weight = searcher.createWeight(new TermQuery(new Term(field, term.text())), ScoreMode.TOP_SCORES, 1);
      weights.put(term.text(), weight);
    }
  }

  /**
   * Lets the scorer enter a segment.
   *
   * @param plan the scorer's plan, of the same tree
   * @return false when no document of the segment can match
   */
  boolean enterSegment(LeafReaderContext leaf, QueryPlan plan, WindowScorer scorer) throws IOException {
    List<TermCursor> positives = new ArrayList<>();
    List<TermCursor> negatives = new ArrayList<>();
    for (QueryTerm term : plan.terms) {
      TermCursor cursor = TermCursor.open(term, field, weights.get(term.text()), leaf);
      if (cursor != null) (term.positive() ? positives : negatives).add(cursor);
    }
    scorer.enterSegment(leaf, positives, negatives);
    return !positives.isEmpty();
  }
}
