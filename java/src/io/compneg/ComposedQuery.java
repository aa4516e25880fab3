package io.compneg;

import com.fasterxml.jackson.databind.JsonNode;
import io.compneg.index.DocumentFilter;
import io.compneg.search.ComposedWeight;
import io.compneg.search.ScoringTree;
import java.util.Objects;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.QueryVisitor;
import org.apache.lucene.search.ScoreMode;
import org.apache.lucene.search.Weight;

/**
 * A composed query as a Lucene query, for any searcher of Lucene. Its scores are those of {@code SignedSearcher} to the
 * last bit, whatever similarity the searcher has. A score may be 0 or less.
 */
public final class ComposedQuery extends Query {
  private final String field;
  private final ScoringTree tree;
  private final DocumentFilter filter;

  /**
   * Reads one JSON line.
   *
   * @param field the field whose term frequencies are the impacts
   * @throws IllegalArgumentException when the line is no composed query; the message says where and why
   */
  public ComposedQuery(String field, String line) {
    this.field = field;
    JsonNode query = ScoringTree.json(line);
    this.tree = ScoringTree.of(query);
    this.filter = DocumentFilter.of(query.get("filter"));
  }

  @Override
  public Weight createWeight(IndexSearcher searcher, ScoreMode scoreMode, float boost) {
    return ComposedWeight.of(this, field, tree, filter, boost);
  }

  @Override
  public void visit(QueryVisitor visitor) {
    visitor.visitLeaf(this);
  }

  @Override
  public String toString(String defaultField) {
    return field + ":" + tree + (filter == null ? "" : " " + filter);
  }

  @Override
  public boolean equals(Object other) {
    return sameClassAs(other) && field.equals(((ComposedQuery) other).field)
        && tree.equals(((ComposedQuery) other).tree) && Objects.equals(filter, ((ComposedQuery) other).filter);
  }

  @Override
  public int hashCode() {
    return Objects.hash(classHash(), field, tree, filter);
  }
}
