package io.compneg;

import java.io.IOException;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.search.DocIdSetIterator;

/**
 * The matching documents of a segment in ascending order, for Lucene's collectors. They are scored by the
 * window, and only where the caller goes.
 *
 * <p>A caller that jumps (Lucene scores the final hits of a sorted search anew) gets small windows, one that
 * walks gets ever larger ones.
 */
final class MatchIterator extends DocIdSetIterator implements ScoreSink {
  private static final int FIRST_WINDOW = 64;

  private final LeafReaderContext leaf;
  private final WindowScorer scorer;
  private final int maxDoc;

  // The matches of the current window.
  private final int[] docs = new int[WindowScorer.WINDOW];
  private final float[] scores = new float[WindowScorer.WINDOW];
  private int count;
  private int windowEnd;
  private int windowSize = FIRST_WINDOW;

  private int position = -1;
  private int doc = -1;
  private float threshold = Float.NEGATIVE_INFINITY;

  private MatchIterator(LeafReaderContext leaf, QueryPlan plan) {
    this.leaf = leaf;
    this.maxDoc = leaf.reader().maxDoc();
    this.scorer = new WindowScorer(plan, this, new WindowScorer.Statistics());
  }

  /** Opens a segment; null when none of its documents can match. */
  static MatchIterator open(LeafReaderContext leaf, QueryTerms terms, ScoringTree tree) throws IOException {
    QueryPlan plan = new QueryPlan(tree);
    MatchIterator matches = new MatchIterator(leaf, plan);
    return terms.enter(leaf, plan, matches.scorer) ? matches : null;
  }

  @Override
  public int docID() {
    return doc;
  }

  /** The current document's score. */
  float score() {
    return scores[position];
  }

  /** From now on only documents that reach this score are needed. */
  void raiseThreshold(float score) {
    threshold = Math.max(threshold, score);
  }

  @Override
  public int nextDoc() throws IOException {
    return advance(doc + 1);
  }

  @Override
  public int advance(int target) throws IOException {
    while (true) {
      for (position++; position < count; position++) {
        if (docs[position] >= target && scores[position] >= threshold) return doc = docs[position];
      }
      int from = Math.max(windowEnd, target);
      if (from >= maxDoc) return doc = NO_MORE_DOCS;
      scoreFrom(from);
    }
  }

  private void scoreFrom(int from) throws IOException {
    windowSize = from > windowEnd ? FIRST_WINDOW : Math.min(4 * windowSize, WindowScorer.WINDOW);
    windowEnd = Math.min(maxDoc, from + windowSize);
    count = 0;
    position = -1;
    scorer.scoreWindow(from, windowEnd);
  }

  @Override
  public long cost() {
    return maxDoc;
  }

  @Override
  public float threshold() {
    return threshold;
  }

  @Override
  public void offer(float score, int doc) {
    docs[count] = doc - leaf.docBase;
    scores[count++] = score;
  }
}
