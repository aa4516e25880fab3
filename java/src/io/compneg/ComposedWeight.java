package io.compneg;

import java.io.IOException;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.search.Explanation;
import org.apache.lucene.search.Weight;

/** The part of the weight of a {@link ComposedQuery} that is the same on all releases of Lucene. */
abstract class ComposedWeight extends Weight {
  final float boost;
  private final String field;
  private final ScoringTree tree;
  private final DocumentFilter filter;

  ComposedWeight(ComposedQuery query, float boost) {
    super(query);
    this.field = query.field();
    this.tree = query.tree();
    this.filter = query.filter();
    this.boost = boost;
  }

  /** The matches of a segment; null when it has none. */
  final ScoredDocIterator open(LeafReaderContext leaf) throws IOException {
    return ScoredDocIterator.open(leaf, field, tree, filter);
  }

  @Override
  public final Explanation explain(LeafReaderContext leaf, int doc) throws IOException {
    ScoredDocIterator matches = open(leaf);
    if (matches == null || matches.advance(doc) != doc) {
      return Explanation.noMatch("no positive part of the query matches");
    }
    return Explanation.match(boost * matches.score(), "score of the composed query");
  }

  @Override
  public final boolean isCacheable(LeafReaderContext leaf) {
    return true;
  }
}
