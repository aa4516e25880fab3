package io.compneg.search;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.compneg.blocks.Accumulators;
import io.compneg.blocks.Contribution;
import io.compneg.index.DocumentFilter;
import io.compneg.index.Json;
import io.compneg.search.QueryPlan.QueryTerm;
import java.io.IOException;
import org.apache.lucene.index.IndexReader;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.ReaderUtil;
import org.apache.lucene.index.Term;

/**
 * Explains the score of one document, with the arithmetic that ranks it.
 *
 * <p>An explanation has the {@code score}, whether the document {@code matched} and is {@code allowed} by the filter,
 * and in {@code accumulators} for every
 * accumulator of the plan, in the order of the query's leaves, a list of {@code [term, impact, contribution]}.
 */
final class Explainer {
  private final LeafReaderContext leaf;
  private final String field;
  private final int doc;

  Explainer(IndexReader reader, String field, int doc) {
    this.leaf = reader.leaves().get(ReaderUtil.subIndex(doc, reader.leaves()));
    this.field = field;
    this.doc = doc - leaf.docBase;
  }

  /**
   * Explains the document's score.
   *
   * @param filter the documents that may be found; null for all
   */
  ObjectNode explain(ScoringTree tree, DocumentFilter filter) throws IOException {
    QueryPlan plan = new QueryPlan(tree);
    Accumulators accumulators = plan.room(1);
    ObjectNode explanation = Json.MAPPER.createObjectNode();
    ArrayNode parts = explanation.putArray("accumulators");
    for (int i = 0; i < plan.accumulators(); i++) parts.addArray();
    for (var part : plan.named.entrySet()) {
      if (!part.getValue().in(leaf).get(doc)) continue;
      accumulators.sums[part.getKey()][0] = 1;
      ((ArrayNode) parts.get(part.getKey())).addArray().add("").add(1).add(1);
    }
    for (QueryTerm term : plan.terms) {
      int impact = impact(term.text());
      if (impact == 0) continue;
      accumulators.add(0, impact, term.contributions());
      for (Contribution each : term.contributions()) {
        ((ArrayNode) parts.get(each.accumulator)).addArray().add(term.text()).add(impact).add(each.of(impact));
      }
    }
    plan.root.score(accumulators.sums, accumulators.nothing, new int[1], 1);
    explanation.put("score", (double) NodeScorer.finite(plan.root.reportedScore(0)));
    explanation.put("matched", tree instanceof ScoringTree.All || plan.root.matches(0));
    explanation.put("allowed", filter == null || filter.in(leaf).get(doc));
    return explanation;
  }

  private int impact(String text) throws IOException {
    PostingsEnum postings = leaf.reader().postings(new Term(field, text), PostingsEnum.FREQS);
    return postings != null && postings.advance(doc) == doc ? postings.freq() : 0;
  }
}
