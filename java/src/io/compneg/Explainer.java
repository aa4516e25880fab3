package io.compneg;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.compneg.QueryPlan.PlannedTerm;
import io.compneg.QueryPlan.Slot;
import java.io.IOException;
import org.apache.lucene.index.IndexReader;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.ReaderUtil;
import org.apache.lucene.index.Term;

/**
 * Takes one document's score apart with the same arithmetic that ranked it.
 *
 * <p>The answer holds the {@code score}, whether the document {@code matched}, and for every channel of the
 * plan, in the order of the query's leaves, the list of {@code [term, impact, contribution]}.
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

  ObjectNode explain(ScoringTree tree) throws IOException {
    QueryPlan plan = new QueryPlan(tree);
    double[][] channels = new double[plan.channels()][1];
    ObjectNode explanation = ScoringTree.JSON.createObjectNode();
    ArrayNode parts = explanation.putArray("channels");
    for (int i = 0; i < plan.channels(); i++) parts.addArray();
    for (PlannedTerm term : plan.terms) {
      int impact = impact(term.text());
      if (impact == 0) continue;
      for (Slot slot : term.slots()) {
        double contribution = slot.contribution(impact);
        channels[slot.channel][0] += contribution;
        ((ArrayNode) parts.get(slot.channel)).addArray().add(term.text()).add(impact).add(contribution);
      }
    }
    plan.root.bound(channels, new double[plan.channels()], new int[1], 1);
    plan.root.score(channels, new int[1], 1);
    explanation.put("score", (double) WindowScorer.finite(plan.root.value[0]));
    explanation.put("matched", plan.root.gain[0] > 0);
    return explanation;
  }

  private int impact(String text) throws IOException {
    PostingsEnum postings = leaf.reader().postings(new Term(field, text), PostingsEnum.FREQS);
    return postings != null && postings.advance(doc) == doc ? postings.freq() : 0;
  }
}
