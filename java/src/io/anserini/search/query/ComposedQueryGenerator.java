package io.anserini.search.query;

import io.compneg.ComposedQuery;
import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.search.Query;

/**
 * {@code -generator ComposedQueryGenerator}: makes Lucene queries of what {@code -topicReader ComposedQuery} reads.
 */
public final class ComposedQueryGenerator extends QueryGenerator {
  @Override
  public Query buildQuery(String field, Analyzer analyzer, String line) {
    try {
      return new ComposedQuery(field, line);
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException(e.getMessage() + "; read the topics with -topicReader ComposedQuery", e);
    }
  }
}
