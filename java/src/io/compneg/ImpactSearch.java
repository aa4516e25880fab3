package io.compneg;

import io.compneg.QueryPlan.PlannedTerm;
import java.io.IOException;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import org.apache.lucene.index.IndexReader;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.ScoreMode;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.search.Weight;

/** Exact top-k search of scoring trees on an open index. Safe for use by several threads at once. */
final class ImpactSearch {
  private final String field;
  private final IndexSearcher searcher;
  private final ExternalIds externalIds;

  ImpactSearch(IndexReader reader, String field) {
    this.field = field;
    this.searcher = new IndexSearcher(reader);
    this.searcher.setSimilarity(new io.anserini.search.similarity.ImpactSimilarity());
    this.searcher.setQueryCache(null);
    this.externalIds = new ExternalIds(reader);
  }

  TopHits.Ranking search(ScoringTree tree, int k, WindowScorer.Statistics statistics) throws IOException {
    QueryPlan plan = new QueryPlan(tree);
    TopHits top = new TopHits(k, externalIds);
    WindowScorer scorer = new WindowScorer(plan, top, statistics);
    Map<PlannedTerm, Weight> weights = new IdentityHashMap<>();
    for (PlannedTerm term : plan.terms) {
      if (term.positive()) {
        weights.put(term, searcher.createWeight(new TermQuery(new Term(field, term.text())), ScoreMode.TOP_SCORES, 1));
      }
    }
    for (LeafReaderContext leaf : searcher.getIndexReader().leaves()) {
      List<TermCursor> positives = new ArrayList<>();
      List<TermCursor> negatives = new ArrayList<>();
      for (PlannedTerm term : plan.terms) {
        TermCursor cursor = TermCursor.open(term, field, weights.get(term), leaf);
        if (cursor != null) (term.positive() ? positives : negatives).add(cursor);
      }
      if (!positives.isEmpty()) scorer.score(leaf, positives, negatives);
    }
    return top.ranking();
  }
}
