package io.compneg;

import java.io.IOException;
import org.apache.lucene.index.IndexReader;
import org.apache.lucene.index.LeafReaderContext;

/** Exact top-k search of scoring trees on an open index. Safe for use by several threads at once. */
final class ImpactSearch {
  private final String field;
  private final IndexReader reader;
  private final ExternalIds externalIds;

  ImpactSearch(IndexReader reader, String field) {
    this.field = field;
    this.reader = reader;
    this.externalIds = new ExternalIds(reader);
  }

  TopHits.Ranking search(ScoringTree tree, int k, WindowScorer.Statistics statistics) throws IOException {
    QueryPlan plan = new QueryPlan(tree);
    QueryTerms terms = new QueryTerms(reader.getContext(), field, plan);
    TopHits top = new TopHits(k, externalIds);
    WindowScorer scorer = new WindowScorer(plan, top, statistics);
    for (LeafReaderContext leaf : reader.leaves()) {
      if (terms.enter(leaf, plan, scorer)) scorer.scoreSegment();
    }
    return top.ranking();
  }
}
