package io.compneg;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A scoring tree laid out for column-wise evaluation.
 *
 * <p>Every leaf owns <em>channels</em>: a linear leaf one for its positive and one for its negative terms, a
 * product one for each operand. A channel holds non-negative sums, one per document. A term that occurs in
 * several leaves is one {@link PlannedTerm} with several {@link Slot}s, so its postings are read once.
 */
final class QueryPlan {
  /** What a term's impact adds to a channel: {@code factor · impact^(1/degree)}. */
  static final class Slot {
    final int channel;
    final boolean positive;
    final int degree;
    final double factor;
    final double magic;
    private final double[] roots;

    private Slot(int channel, boolean positive, double factor, int degree, double magic) {
      this.channel = channel;
      this.positive = positive;
      this.degree = degree;
      this.factor = factor;
      this.magic = magic;
      this.roots = degree <= 2 ? null : Roots.table(degree);
    }

    double contribution(int impact) {
      return switch (degree) {
        case 1 -> linear(factor, impact);
        case 2 -> squareRoot(factor, magic, impact);
        default -> (factor * Roots.of(impact, degree, roots) + magic) - magic;
      };
    }

    static double linear(double factor, int impact) {
      return factor * impact;
    }

    static double squareRoot(double factor, double magic, int impact) {
      return (factor * Math.sqrt(impact) + magic) - magic;
    }

    void addAll(double[] sums, int[] offsets, int[] impacts, int count) {
      double factor = this.factor;
      double magic = this.magic;
      switch (degree) {
        case 1 -> {
          for (int i = 0; i < count; i++) sums[offsets[i]] += linear(factor, impacts[i]);
        }
        case 2 -> {
          for (int i = 0; i < count; i++) sums[offsets[i]] += squareRoot(factor, magic, impacts[i]);
        }
        default -> {
          for (int i = 0; i < count; i++) sums[offsets[i]] += contribution(impacts[i]);
        }
      }
    }
  }

  /** A distinct term of the query; {@code positive} when one of its slots is. */
  record PlannedTerm(String text, List<Slot> slots, boolean positive) {}

  /** Impacts beyond this still score right; only the last bits of their roots are then rounded. */
  private static final double LARGEST_IMPACT = 1 << 20;

  final List<PlannedTerm> terms = new ArrayList<>();
  final ScoreColumn root;
  private final List<Integer> operandChannels = new ArrayList<>();
  private int channels;
  private final Map<String, List<Slot>> slots = new LinkedHashMap<>();

  QueryPlan(ScoringTree tree) {
    root = plan(tree);
    slots.forEach((text, list) -> terms.add(new PlannedTerm(text, list, list.stream().anyMatch(slot -> slot.positive))));
  }

  int channels() {
    return channels;
  }

  /** The channels of all products' operands. */
  List<Integer> operandChannels() {
    return operandChannels;
  }

  private ScoreColumn plan(ScoringTree tree) {
    if (tree instanceof ScoringTree.Linear linear) return planLinear(linear.weights());
    if (tree instanceof ScoringTree.Product product) return planProduct(product.operands());
    if (tree instanceof ScoringTree.Max max) return new ScoreColumn.Max(planAll(max.children()));
    return new ScoreColumn.Sum(planAll(((ScoringTree.Sum) tree).children()));
  }

  private ScoreColumn[] planAll(List<ScoringTree> children) {
    return children.stream().map(this::plan).toArray(ScoreColumn[]::new);
  }

  private ScoreColumn planLinear(Map<String, Double> weights) {
    double largest = weights.values().stream().mapToDouble(Math::abs).max().orElse(1);
    int positive = addChannel();
    boolean signed = weights.values().stream().anyMatch(weight -> weight < 0);
    int negative = signed ? addChannel() : -1;
    weights.forEach(
        (term, weight) -> {
          double fixed = FixedPoint.weight(Math.abs(weight), largest);
          addSlot(term, new Slot(weight > 0 ? positive : negative, weight > 0, fixed, 1, 0));
        });
    return new ScoreColumn.Linear(positive, negative);
  }

  private ScoreColumn planProduct(List<Map<String, Double>> operands) {
    int degree = operands.size();
    int[] channels = new int[degree];
    for (int i = 0; i < degree; i++) {
      int channel = channels[i] = addChannel();
      operandChannels.add(channel);
      double largest = operands.get(i).values().stream().mapToDouble(Double::doubleValue).max().orElse(1);
      double largestRoot = Roots.root(largest, degree) * Roots.root(LARGEST_IMPACT, degree);
      double magic = FixedPoint.roundingMagic(largestRoot);
      double least = FixedPoint.leastRoot(largestRoot);
      operands.get(i)
          .forEach(
              (term, weight) -> {
                double factor = Math.max(Roots.root(weight, degree), least);
                addSlot(term, new Slot(channel, true, factor, degree, magic));
              });
    }
    return new ScoreColumn.Product(channels);
  }

  private int addChannel() {
    return channels++;
  }

  private void addSlot(String term, Slot slot) {
    slots.computeIfAbsent(term, key -> new ArrayList<>()).add(slot);
  }
}
