package io.compneg.search;

import java.util.Arrays;

/**
 * A node of the scoring tree, which scores many documents at once from their accumulators.
 *
 * <p>Every node has two columns. {@link #upperBounds} holds the score without negative and excluded terms; a document
 * matches the node exactly when this is above 0. {@link #scores} holds the score. Every node is monotone in its
 * positive accumulators and negative terms only lower it. So the upper bound of a document, taken with all that its
 * accumulators may still grow by ({@code remaining}), bounds its score from above.
 *
 * <p>A document that does not match has the score 0, but for the negative part of a linear leaf and for a {@link
 * NegativeProduct}: these count inside a {@link Sum} whatever else the document matches.
 */
abstract class NodeScorer {
  final double[] upperBounds;

  /** The same array as {@link #upperBounds} where no negative term is involved. */
  double[] scores;

  NodeScorer(double[] upperBounds) {
    this.upperBounds = upperBounds;
    this.scores = upperBounds;
  }

  /**
   * Fills {@link #upperBounds} for a whole window, as if each document's accumulators had grown by {@code remaining}.
   */
  abstract void boundWindow(double[][] accumulators, double[] remaining, int count);

  /** As {@link #boundWindow}, for some documents: {@code candidates[i]} is a place in the accumulators. */
  abstract void boundCandidates(double[][] accumulators, double[] remaining, int[] candidates, int count);

  /**
   * Fills {@link #scores} of the candidates whose upper bounds, of complete accumulators, were filled last. Of those
   * that no longer match, because of what is excluded or required, the upper bounds become 0.
   *
   * @param nothing what complete accumulators may still grow by: 0 for each
   */
  abstract void subtractNegatives(double[][] accumulators, double[] nothing, int[] candidates, int count);

  /** The upper bound of a document whose accumulators hold just {@code sums}. */
  abstract double upperBound(double[] sums);

  /**
   * Fills {@link #upperBounds} and {@link #scores} of the candidates, whose accumulators are complete.
   *
   * @param nothing a 0 for each accumulator
   */
  final void score(double[][] accumulators, double[] nothing, int[] candidates, int count) {
    boundCandidates(accumulators, nothing, candidates, count);
    subtractNegatives(accumulators, nothing, candidates, count);
  }

  /** Whether the i-th candidate, which was scored last, matches. */
  final boolean matches(int i) {
    return upperBounds[i] > 0;
  }

  /** The score of the i-th candidate, which was scored last, as it is reported; infinite beyond the largest float. */
  final float reportedScore(int i) {
    float score = (float) scores[i] + 0f; // + 0 makes −0 and 0 equal
    return Float.isNaN(score) ? Float.POSITIVE_INFINITY : score; // ∞ − ∞, whose upper bound is ∞
  }

  /** A score that is reported, if it is finite. Which others are computed depends on what is pruned. */
  static float finite(float score) {
    if (Float.isFinite(score)) return score;
    throw new IllegalArgumentException(
        "a score is beyond 3.4e38: the query has too large weights or too many conjuncts");
  }

  /** Whether negative or excluded terms can make a score differ from its upper bound. */
  final boolean signed() {
    return scores != upperBounds;
  }

  static final class Linear extends NodeScorer {
    private final int positive;
    private final int negative; // -1 when the leaf has no negative term

    Linear(int window, int positive, int negative) {
      super(new double[window]);
      this.positive = positive;
      this.negative = negative;
      if (negative >= 0) scores = new double[window];
    }

    @Override
    void boundWindow(double[][] accumulators, double[] remaining, int count) {
      double[] sums = accumulators[positive];
      double more = remaining[positive];
      for (int i = 0; i < count; i++) upperBounds[i] = sums[i] + more;
    }

    @Override
    void boundCandidates(double[][] accumulators, double[] remaining, int[] candidates, int count) {
      double[] sums = accumulators[positive];
      double more = remaining[positive];
      for (int i = 0; i < count; i++) upperBounds[i] = sums[candidates[i]] + more;
    }

    @Override
    void subtractNegatives(double[][] accumulators, double[] nothing, int[] candidates, int count) {
      if (negative < 0) return;
      double[] sums = accumulators[negative];
      for (int i = 0; i < count; i++) scores[i] = upperBounds[i] - sums[candidates[i]];
    }

    @Override
    double upperBound(double[] sums) {
      return sums[positive];
    }
  }

  static final class Product extends NodeScorer {
    /** The product of so many operands is finite, since each is a sum below 1e38. */
    private static final int FINITE = 8;

    private final int[] operands;
    private final int root;
    private final double weight;

    Product(int window, int[] operands, int root, double weight) {
      super(new double[window]);
      this.operands = operands;
      this.root = root;
      this.weight = weight;
    }

    @Override
    void boundWindow(double[][] accumulators, double[] remaining, int count) {
      for (int n = 0; n < operands.length; n++) {
        double[] sums = accumulators[operands[n]];
        double more = remaining[operands[n]];
        if (n == 0) {
          for (int i = 0; i < count; i++) upperBounds[i] = sums[i] + more;
        } else {
          for (int i = 0; i < count; i++) upperBounds[i] *= sums[i] + more;
        }
      }
      applyRootAndWeight(count);
    }

    @Override
    void boundCandidates(double[][] accumulators, double[] remaining, int[] candidates, int count) {
      for (int n = 0; n < operands.length; n++) {
        double[] sums = accumulators[operands[n]];
        double more = remaining[operands[n]];
        if (n == 0) {
          for (int i = 0; i < count; i++) upperBounds[i] = sums[candidates[i]] + more;
        } else {
          for (int i = 0; i < count; i++) upperBounds[i] *= sums[candidates[i]] + more;
        }
      }
      applyRootAndWeight(count);
    }

    @Override
    void subtractNegatives(double[][] accumulators, double[] nothing, int[] candidates, int count) {}

    @Override
    double upperBound(double[] sums) {
      double product = 1;
      for (int operand : operands) product *= sums[operand];
      product = known(product);
      if (root != 1) product = rootOf(product);
      return weight == 1 ? product : weighted(product);
    }

    private void applyRootAndWeight(int count) {
      if (operands.length > FINITE) {
        for (int i = 0; i < count; i++) upperBounds[i] = known(upperBounds[i]);
      }
      if (root != 1) {
        for (int i = 0; i < count; i++) upperBounds[i] = rootOf(upperBounds[i]);
      }
      if (weight != 1) {
        for (int i = 0; i < count; i++) upperBounds[i] = weighted(upperBounds[i]);
      }
    }

    /** ∞ · 0 is 0: an operand is missing. */
    private static double known(double product) {
      return Double.isNaN(product) ? 0 : product;
    }

    /** Never rounded to 0, because what is above 0 matches. */
    private double weighted(double product) {
      return product > 0 ? Math.max(weight * product, Double.MIN_VALUE) : 0;
    }

    private double rootOf(double product) {
      return root == 2 ? Math.sqrt(product) : StrictMath.pow(product, 1.0 / root);
    }
  }

  /** A product of negative weight. Its upper bound is 0, since it only lowers a score. */
  static final class NegativeProduct extends NodeScorer {
    private final Product product;

    NegativeProduct(int window, Product product) {
      super(new double[window]);
      this.product = product;
      scores = new double[window];
    }

    @Override
    void boundWindow(double[][] accumulators, double[] remaining, int count) {}

    @Override
    void boundCandidates(double[][] accumulators, double[] remaining, int[] candidates, int count) {}

    @Override
    void subtractNegatives(double[][] accumulators, double[] nothing, int[] candidates, int count) {
      product.score(accumulators, nothing, candidates, count);
      for (int i = 0; i < count; i++) scores[i] = -product.scores[i];
    }

    @Override
    double upperBound(double[] sums) {
      return 0;
    }
  }

  /** A node over other nodes. */
  private abstract static class Inner extends NodeScorer {
    final NodeScorer[] children;

    Inner(int window, NodeScorer[] children) {
      super(new double[window]);
      this.children = children;
      if (Arrays.stream(children).anyMatch(NodeScorer::signed)) scores = new double[window];
    }

    @Override
    void boundWindow(double[][] accumulators, double[] remaining, int count) {
      for (NodeScorer child : children) child.boundWindow(accumulators, remaining, count);
      combineUpperBounds(count);
    }

    @Override
    void boundCandidates(double[][] accumulators, double[] remaining, int[] candidates, int count) {
      for (NodeScorer child : children) child.boundCandidates(accumulators, remaining, candidates, count);
      combineUpperBounds(count);
    }

    @Override
    void subtractNegatives(double[][] accumulators, double[] nothing, int[] candidates, int count) {
      if (!signed()) return;
      for (NodeScorer child : children) child.subtractNegatives(accumulators, nothing, candidates, count);
      combineUpperBounds(count); // what a child excludes does not match by it
      combineScores(count);
    }

    abstract void combineUpperBounds(int count);

    abstract void combineScores(int count);
  }

  static final class Max extends Inner {
    Max(int window, NodeScorer[] children) {
      super(window, children);
    }

    @Override
    void combineUpperBounds(int count) {
      Arrays.fill(upperBounds, 0, count, 0);
      for (NodeScorer child : children) {
        for (int i = 0; i < count; i++) upperBounds[i] = Math.max(upperBounds[i], child.upperBounds[i]);
      }
    }

    @Override
    void combineScores(int count) {
      Arrays.fill(scores, 0, count, Double.NEGATIVE_INFINITY);
      for (NodeScorer child : children) {
        for (int i = 0; i < count; i++) {
          if (child.matches(i)) scores[i] = Math.max(scores[i], child.scores[i]);
        }
      }
      for (int i = 0; i < count; i++) {
        if (!matches(i)) scores[i] = 0;
      }
    }

    @Override
    double upperBound(double[] sums) {
      double best = 0;
      for (NodeScorer child : children) best = Math.max(best, child.upperBound(sums));
      return best;
    }
  }

  static final class Sum extends Inner {
    Sum(int window, NodeScorer[] children) {
      super(window, children);
    }

    @Override
    void combineUpperBounds(int count) {
      Arrays.fill(upperBounds, 0, count, 0);
      for (NodeScorer child : children) {
        for (int i = 0; i < count; i++) upperBounds[i] += child.upperBounds[i];
      }
    }

    @Override
    void combineScores(int count) {
      Arrays.fill(scores, 0, count, 0);
      for (NodeScorer child : children) {
        for (int i = 0; i < count; i++) scores[i] += child.scores[i];
      }
    }

    @Override
    double upperBound(double[] sums) {
      double sum = 0;
      for (NodeScorer child : children) sum += child.upperBound(sums);
      return sum;
    }
  }
}
