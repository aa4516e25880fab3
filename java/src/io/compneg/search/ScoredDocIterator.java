package io.compneg.search;

import io.compneg.index.DocumentFilter;
import java.io.IOException;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.search.DocIdSetIterator;

/**
 * Iterates over the matching documents of a segment and their scores, for Lucene's collectors. A window is scored when
 * the caller enters it.
 *
 * <p>Windows are small for a caller that jumps, as Lucene does when it scores the final hits of a sorted search anew.
 * They grow for a caller that walks.
 */
final class ScoredDocIterator extends DocIdSetIterator implements HitCollector {
  private static final int FIRST_WINDOW = 64;

  private final LeafReaderContext leaf;
  private final WindowScorer scorer;
  private final int maxDoc;

  // The matches of the current window.
  private final int[] docs;
  private final float[] scores;
  private int count;
  private int windowEnd;
  private int windowSize = FIRST_WINDOW;

  private int position = -1;
  private int doc = -1;
  private float minCompetitiveScore = Float.NEGATIVE_INFINITY;

  private ScoredDocIterator(LeafReaderContext leaf, QueryPlan plan) {
    this.leaf = leaf;
    this.maxDoc = leaf.reader().maxDoc();
    this.docs = new int[plan.window];
    this.scores = new float[plan.window];
    this.scorer = new WindowScorer(plan, this, new WindowScorer.Statistics());
  }

  /** Opens a segment; null when none of its documents can match. */
  static ScoredDocIterator open(LeafReaderContext leaf, String field, ScoringTree tree, DocumentFilter filter)
      throws IOException {
    QueryPlan plan = new QueryPlan(tree);
    ScoredDocIterator matches = new ScoredDocIterator(leaf, plan);
    return matches.scorer.enter(new QuerySegment(plan, leaf, field, filter, null, matches.k())) ? matches : null;
  }

  @Override
  public int docID() {
    return doc;
  }

  /** The current document's score. */
  float score() {
    return scores[position];
  }

  /** From now on documents below this score may be left out. */
  void setMinCompetitiveScore(float score) {
    minCompetitiveScore = Math.max(minCompetitiveScore, score);
  }

  @Override
  public int nextDoc() throws IOException {
    return advance(doc + 1);
  }

  @Override
  public int advance(int target) throws IOException {
    while (true) {
      for (position++; position < count; position++) {
        if (docs[position] >= target && scores[position] >= minCompetitiveScore) return doc = docs[position];
      }
      int from = Math.max(windowEnd, target);
      if (from >= maxDoc) return doc = NO_MORE_DOCS;
      scoreFrom(from);
    }
  }

  private void scoreFrom(int from) throws IOException {
    windowSize = from > windowEnd ? FIRST_WINDOW : Math.min(4 * windowSize, docs.length);
    windowEnd = Math.min(maxDoc, from + windowSize);
    count = 0;
    position = -1;
    scorer.score(from, windowEnd);
  }

  @Override
  public long cost() {
    return maxDoc;
  }

  @Override
  public float minCompetitiveScore() {
    return minCompetitiveScore;
  }

  @Override
  public void collect(int doc, float score) {
    docs[count] = doc - leaf.docBase;
    scores[count++] = NodeScorer.finite(score);
  }
}
