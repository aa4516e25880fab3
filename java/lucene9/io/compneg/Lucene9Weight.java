package io.compneg;

import java.io.IOException;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.search.Scorer;

/** The weight of a {@link ComposedQuery} for Lucene 9, where weights make scorers and scorers know their weight. */
final class Lucene9Weight extends ComposedWeight {
  Lucene9Weight(ComposedQuery query, QueryTerms terms, float boost) {
    super(query, terms, boost);
  }

  @Override
  public Scorer scorer(LeafReaderContext leaf) throws IOException {
    MatchIterator matches = open(leaf);
    return matches == null ? null : new MatchScorer(matches);
  }

  private final class MatchScorer extends Scorer {
    private final MatchIterator matches;

    MatchScorer(MatchIterator matches) {
      super(Lucene9Weight.this);
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
      if (boost == 1) matches.raiseThreshold(score);
    }
  }
}
