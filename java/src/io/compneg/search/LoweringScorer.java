package io.compneg.search;

import java.util.Arrays;
import java.util.List;

/** A node that lowers the score of its child by what is excluded. Its upper bound is that of the child. */
abstract class LoweringScorer extends NodeScorer {
  final NodeScorer child;
  final NodeScorer[] excluded;

  LoweringScorer(int window, NodeScorer child, NodeScorer[] excluded) {
    super(child.upperBounds);
    this.child = child;
    this.excluded = excluded;
    scores = new double[window];
  }

  @Override
  void boundWindow(double[][] accumulators, double[] remaining, int count) {
    child.boundWindow(accumulators, remaining, count);
  }

  @Override
  void boundCandidates(double[][] accumulators, double[] remaining, int[] candidates, int count) {
    child.boundCandidates(accumulators, remaining, candidates, count);
  }

  @Override
  double upperBound(double[] sums) {
    return child.upperBound(sums);
  }

  /** A score that shrinks with the scores of what is excluded. */
  static final class Damped extends LoweringScorer {
    private static final double FLOOR_LOSS = 0.02;

    private final ScoringTree.Damped damped;
    private final double[] ratios;

    Damped(int window, NodeScorer child, NodeScorer[] excluded, ScoringTree.Damped damped) {
      super(window, child, excluded);
      this.damped = damped;
      ratios = new double[window];
    }

    @Override
    void subtractNegatives(double[][] accumulators, double[] nothing, int[] candidates, int count) {
      child.subtractNegatives(accumulators, nothing, candidates, count);
      Arrays.fill(ratios, 0, count, 0);
      for (int n = 0; n < excluded.length; n++) {
        excluded[n].score(accumulators, nothing, candidates, count);
        double largest = damped.best().get(n);
        for (int i = 0; i < count; i++) ratios[i] = Math.max(ratios[i], excluded[n].scores[i] / largest);
      }
      for (int i = 0; i < count; i++) {
        double score = child.scores[i];
        double ratio = Math.min(1, ratios[i]);
        double cube = ratio * ratio * ratio;
        double kept = Math.min(score, damped.floor()) * (1 - FLOOR_LOSS * cube);
        scores[i] = score > 0 ? Math.max(score * (1 - damped.weight() * cube), kept) : score;
      }
    }
  }

  /** A score without documents that are above the limit of an excluded part, or that lack a required part. */
  static final class Excluding extends LoweringScorer {
    private final List<Double> above;
    private final NodeScorer[] required;

    Excluding(int window, NodeScorer child, NodeScorer[] excluded, List<Double> above, NodeScorer[] required) {
      super(window, child, excluded);
      this.above = above;
      this.required = required;
    }

    @Override
    void subtractNegatives(double[][] accumulators, double[] nothing, int[] candidates, int count) {
      child.subtractNegatives(accumulators, nothing, candidates, count);
      System.arraycopy(child.scores, 0, scores, 0, count);
      for (int n = 0; n < excluded.length; n++) {
        excluded[n].score(accumulators, nothing, candidates, count);
        double limit = above.get(n);
        for (int i = 0; i < count; i++) {
          if (excluded[n].scores[i] > limit) upperBounds[i] = scores[i] = 0;
        }
      }
      for (NodeScorer part : required) {
        part.score(accumulators, nothing, candidates, count);
        for (int i = 0; i < count; i++) {
          if (!part.matches(i)) upperBounds[i] = scores[i] = 0;
        }
      }
    }
  }
}
