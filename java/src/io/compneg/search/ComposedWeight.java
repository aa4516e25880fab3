package io.compneg.search;

import io.compneg.index.DocumentFilter;
import java.io.IOException;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.search.Explanation;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.Weight;

/** The weight of a composed query, as far as it is the same on all releases of Lucene. */
public abstract class ComposedWeight extends Weight {
  final float boost;
  private final String field;
  private final ScoringTree tree;
  private final DocumentFilter filter;

  ComposedWeight(Query query, String field, ScoringTree tree, DocumentFilter filter, float boost) {
    super(query);
    this.field = field;
    this.tree = tree;
    this.filter = filter;
    this.boost = boost;
  }

  /**
   * The weight that the running Lucene needs.
   *
   * @param query the Lucene query that stands for the tree
   * @param field the field whose term frequencies are the impacts
   * @param filter the documents that may be found; null for all
   */
  public static Weight of(Query query, String field, ScoringTree tree, DocumentFilter filter, float boost) {
    return LuceneLine.current().weight(query, field, tree, filter, boost);
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
