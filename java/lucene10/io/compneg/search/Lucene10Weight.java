package io.compneg.search;

import io.compneg.index.DocumentFilter;
import java.io.IOException;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.Scorer;
import org.apache.lucene.search.ScorerSupplier;

/** The weight of a composed query on Lucene 10, where a weight makes suppliers of scorers. */
final class Lucene10Weight extends ComposedWeight {
  Lucene10Weight(Query query, String field, ScoringTree tree, DocumentFilter filter, float boost) {
    super(query, field, tree, filter, boost);
  }

  @Override
  public ScorerSupplier scorerSupplier(LeafReaderContext leaf) throws IOException {
    ScoredDocIterator matches = open(leaf);
    return matches == null ? null : new DefaultScorerSupplier(new MatchScorer(matches));
  }

  private final class MatchScorer extends Scorer {
    private final ScoredDocIterator matches;

    MatchScorer(ScoredDocIterator matches) {
      this.matches = matches;
    }

    @Override
    public int docID() {
      return matches.docID();
    }

    @Override
    public DocIdSetIterator iterator() {
      return matches;
    }

    @Override
    public float score() {
      return boost * matches.score();
    }

    @Override
    public float getMaxScore(int upTo) {
      return Float.POSITIVE_INFINITY;
    }

    @Override
    public void setMinCompetitiveScore(float score) {
      if (boost == 1) matches.setMinCompetitiveScore(score);
    }
  }
}
