package io.compneg.search;

import io.compneg.blocks.Accumulators;
import io.compneg.search.QueryPlan.QueryTerm;
import java.io.IOException;
import java.util.Arrays;
import org.apache.lucene.index.IndexReader;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.Term;
import org.apache.lucene.util.Bits;

/** Scores given documents with the arithmetic that ranks them, from their own postings only. */
final class DocumentScorer {
  private final IndexReader reader;
  private final String field;
  private final QueryPlan plan;
  private final boolean all;
  private final Accumulators accumulators;
  private final int[] documents; // numbers within the segment, ascending
  private final int[] positions; // 0, 1, 2, …: their places in the accumulators

  DocumentScorer(IndexReader reader, String field, ScoringTree tree) {
    this.reader = reader;
    this.field = field;
    this.plan = new QueryPlan(tree);
    this.all = tree instanceof ScoringTree.All;
    this.accumulators = plan.room(plan.window);
    this.documents = new int[plan.window];
    this.positions = new int[plan.window];
    Arrays.setAll(positions, i -> i);
  }

  /**
   * Scores documents in any order, repeated ones too.
   *
   * @param docs their numbers in the index; a negative one stands for none
   * @return a score for each: NaN for a document that the query does not match, +∞ for none
   */
  float[] score(int[] docs) throws IOException {
    float[] scores = new float[docs.length];
    long[] order = new long[docs.length]; // the number above the position in docs
    for (int i = 0; i < docs.length; i++) order[i] = (long) docs[i] << 32 | i;
    Arrays.sort(order);
    int next = 0;
    for (; next < order.length && order[next] < 0; next++) scores[(int) order[next]] = Float.POSITIVE_INFINITY;
    for (LeafReaderContext leaf : reader.leaves()) {
      int end = next;
      int nextBase = leaf.docBase + leaf.reader().maxDoc();
      while (end < order.length && order[end] >> 32 < nextBase) end++;
      if (end > next && !all) scoreSegment(leaf, order, next, end, scores);
      next = end;
    }
    return scores;
  }

  private void scoreSegment(LeafReaderContext leaf, long[] order, int from, int to, float[] scores) throws IOException {
    PostingsEnum[] postings = new PostingsEnum[plan.terms.size()];
    for (int i = 0; i < postings.length; i++) {
      postings[i] = leaf.reader().postings(new Term(field, plan.terms.get(i).text()), PostingsEnum.FREQS);
    }
    for (int start = from; start < to; start += plan.window) {
      int count = Math.min(plan.window, to - start);
      for (int i = 0; i < count; i++) documents[i] = (int) (order[start + i] >> 32) - leaf.docBase;
      accumulators.clear(count);
      for (var part : plan.named.entrySet()) {
        Bits named = part.getValue().in(leaf);
        for (int i = 0; i < count; i++) accumulators.sums[part.getKey()][i] = named.get(documents[i]) ? 1 : 0;
      }
      for (int i = 0; i < postings.length; i++) {
        if (postings[i] != null) add(plan.terms.get(i), postings[i], count);
      }
      plan.root.score(accumulators.sums, accumulators.nothing, positions, count);
      for (int i = 0; i < count; i++) {
        scores[(int) order[start + i]] =
            plan.root.matches(i) ? NodeScorer.finite(plan.root.reportedScore(i)) : Float.NaN;
      }
    }
  }

  private void add(QueryTerm term, PostingsEnum postings, int count) throws IOException {
    int doc = postings.docID();
    for (int i = 0; i < count; i++) {
      if (doc < documents[i]) doc = postings.advance(documents[i]);
      if (doc == documents[i]) accumulators.add(i, postings.freq(), term.contributions());
    }
  }
}
