package io.compneg;

import java.util.Arrays;

/**
 * A node of the scoring tree evaluated for many documents at once, from the sums that its channels hold.
 *
 * <p>Every node has two columns. {@link #gain} is the score without any negative term; a document matches the
 * node exactly when its gain is above 0. {@link #value} is the score. Every node is monotone in its positive
 * channels and negative terms only lower it, so the gain of a document, taken with all that its channels may
 * still grow by ({@code rest}), bounds its score from above.
 *
 * <p>An unmatched document has value 0, but for the negative part of a linear leaf and for a {@link Penalty},
 * which count inside a {@link Sum} whatever else the document matches.
 */
abstract class ScoreColumn {
  final double[] gain = new double[WindowScorer.WINDOW];

  /** The same array as {@link #gain} where no negative term is involved. */
  double[] value = gain;

  /** Fills {@link #gain} for all documents of a window, as if their channels had grown by {@code rest}. */
  abstract void boundAll(double[][] channels, double[] rest, int count);

  /** Fills {@link #gain} for some documents; {@code documents[i]} is an offset into the channels. */
  abstract void bound(double[][] channels, double[] rest, int[] documents, int count);

  /** Fills {@link #value}, for the documents whose gain was filled last, from their complete channels. */
  abstract void score(double[][] channels, int[] documents, int count);

  /** The gain of a document whose channels hold just {@code sums}. */
  abstract double gain(double[] sums);

  /** Whether negative terms can make the value differ from the gain. */
  final boolean signed() {
    return value != gain;
  }

  static final class Linear extends ScoreColumn {
    private final int positive;
    private final int negative; // -1 when the leaf has no negative term

    Linear(int positive, int negative) {
      this.positive = positive;
      this.negative = negative;
      if (negative >= 0) value = new double[WindowScorer.WINDOW];
    }

    @Override
    void boundAll(double[][] channels, double[] rest, int count) {
      double[] gains = channels[positive];
      double more = rest[positive];
      for (int i = 0; i < count; i++) gain[i] = gains[i] + more;
    }

    @Override
    void bound(double[][] channels, double[] rest, int[] documents, int count) {
      double[] gains = channels[positive];
      double more = rest[positive];
      for (int i = 0; i < count; i++) gain[i] = gains[documents[i]] + more;
    }

    @Override
    void score(double[][] channels, int[] documents, int count) {
      if (negative < 0) return;
      double[] losses = channels[negative];
      for (int i = 0; i < count; i++) value[i] = gain[i] - losses[documents[i]];
    }

    @Override
    double gain(double[] sums) {
      return sums[positive];
    }
  }

  static final class Product extends ScoreColumn {
    private final int[] operands;
    private final int root;
    private final double weight;

    Product(int[] operands, int root, double weight) {
      this.operands = operands;
      this.root = root;
      this.weight = weight;
    }

    @Override
    void boundAll(double[][] channels, double[] rest, int count) {
      for (int n = 0; n < operands.length; n++) {
        double[] sums = channels[operands[n]];
        double more = rest[operands[n]];
        if (n == 0) {
          for (int i = 0; i < count; i++) gain[i] = sums[i] + more;
        } else {
          for (int i = 0; i < count; i++) gain[i] *= sums[i] + more;
        }
      }
      finish(count);
    }

    @Override
    void bound(double[][] channels, double[] rest, int[] documents, int count) {
      for (int n = 0; n < operands.length; n++) {
        double[] sums = channels[operands[n]];
        double more = rest[operands[n]];
        if (n == 0) {
          for (int i = 0; i < count; i++) gain[i] = sums[documents[i]] + more;
        } else {
          for (int i = 0; i < count; i++) gain[i] *= sums[documents[i]] + more;
        }
      }
      finish(count);
    }

    @Override
    void score(double[][] channels, int[] documents, int count) {}

    @Override
    double gain(double[] sums) {
      double product = 1;
      for (int operand : operands) product *= sums[operand];
      if (root != 1) product = rootOf(product);
      return weight == 1 ? product : weighted(product);
    }

    private void finish(int count) {
      if (root != 1) for (int i = 0; i < count; i++) gain[i] = rootOf(gain[i]);
      if (weight != 1) for (int i = 0; i < count; i++) gain[i] = weighted(gain[i]);
    }

    /** Never rounded to 0, because what is above 0 matches. */
    private double weighted(double product) {
      return product > 0 ? Math.max(weight * product, Double.MIN_VALUE) : 0;
    }

    private double rootOf(double product) {
      return root == 2 ? Math.sqrt(product) : StrictMath.pow(product, 1.0 / root);
    }
  }

  /** A product that is taken away. It has no gain, as negative terms have none. */
  static final class Penalty extends ScoreColumn {
    private final Product product;

    Penalty(Product product) {
      this.product = product;
      value = new double[WindowScorer.WINDOW];
    }

    @Override
    void boundAll(double[][] channels, double[] rest, int count) {}

    @Override
    void bound(double[][] channels, double[] rest, int[] documents, int count) {}

    @Override
    void score(double[][] channels, int[] documents, int count) {
      product.bound(channels, new double[channels.length], documents, count);
      for (int i = 0; i < count; i++) value[i] = -product.gain[i];
    }

    @Override
    double gain(double[] sums) {
      return 0;
    }
  }

  /** A node over other nodes. */
  private abstract static class Inner extends ScoreColumn {
    final ScoreColumn[] children;

    Inner(ScoreColumn[] children) {
      this.children = children;
      if (Arrays.stream(children).anyMatch(ScoreColumn::signed)) value = new double[WindowScorer.WINDOW];
    }

    @Override
    void boundAll(double[][] channels, double[] rest, int count) {
      for (ScoreColumn child : children) child.boundAll(channels, rest, count);
      combineGains(count);
    }

    @Override
    void bound(double[][] channels, double[] rest, int[] documents, int count) {
      for (ScoreColumn child : children) child.bound(channels, rest, documents, count);
      combineGains(count);
    }

    @Override
    void score(double[][] channels, int[] documents, int count) {
      if (!signed()) return;
      for (ScoreColumn child : children) child.score(channels, documents, count);
      combineValues(count);
    }

    abstract void combineGains(int count);

    abstract void combineValues(int count);
  }

  static final class Max extends Inner {
    Max(ScoreColumn[] children) {
      super(children);
    }

    @Override
    void combineGains(int count) {
      Arrays.fill(gain, 0, count, 0);
      for (ScoreColumn child : children) {
        for (int i = 0; i < count; i++) gain[i] = Math.max(gain[i], child.gain[i]);
      }
    }

    @Override
    void combineValues(int count) {
      Arrays.fill(value, 0, count, Double.NEGATIVE_INFINITY);
      for (ScoreColumn child : children) {
        for (int i = 0; i < count; i++) if (child.gain[i] > 0) value[i] = Math.max(value[i], child.value[i]);
      }
      for (int i = 0; i < count; i++) if (!(gain[i] > 0)) value[i] = 0;
    }

    @Override
    double gain(double[] sums) {
      double best = 0;
      for (ScoreColumn child : children) best = Math.max(best, child.gain(sums));
      return best;
    }
  }

  static final class Sum extends Inner {
    Sum(ScoreColumn[] children) {
      super(children);
    }

    @Override
    void combineGains(int count) {
      Arrays.fill(gain, 0, count, 0);
      for (ScoreColumn child : children) {
        for (int i = 0; i < count; i++) gain[i] += child.gain[i];
      }
    }

    @Override
    void combineValues(int count) {
      Arrays.fill(value, 0, count, 0);
      for (ScoreColumn child : children) {
        for (int i = 0; i < count; i++) value[i] += child.value[i];
      }
    }

    @Override
    double gain(double[] sums) {
      double sum = 0;
      for (ScoreColumn child : children) sum += child.gain(sums);
      return sum;
    }
  }
}
