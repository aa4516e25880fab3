package io.compneg;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A scoring tree laid out for column-wise evaluation.
 *
 * <p>Every leaf owns <em>channels</em>: a linear leaf one for its positive and one for its negative terms, a
 * product one for each distinct operand. A channel holds non-negative sums, one per document. A term that occurs in
 * several leaves is one {@link PlannedTerm} with several {@link Slot}s, so its postings are read once.
 */
final class QueryPlan {
  /** What a term's impact adds to a channel: {@code factor · impact^power}. */
  static final class Slot {
    final int channel;
    final boolean positive;
    final double power;
    final double factor;
    final double magic;
    private final double[] table; // null for the powers 1 and 1/2, which need none

    private Slot(int channel, boolean positive, double factor, double power, double magic) {
      this.channel = channel;
      this.positive = positive;
      this.power = power;
      this.factor = factor;
      this.magic = magic;
      this.table = power == 1 || power == 0.5 ? null : Powers.table(power);
    }

    boolean isTabulated() {
      return table != null;
    }

    double contribution(int impact) {
      if (power == 1) return linear(factor, impact);
      if (power == 0.5) return squareRoot(factor, magic, impact);
      return (factor * Powers.of(impact, power, table) + magic) - magic;
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
      if (power == 1) {
        for (int i = 0; i < count; i++) sums[offsets[i]] += linear(factor, impacts[i]);
      } else if (power == 0.5) {
        for (int i = 0; i < count; i++) sums[offsets[i]] += squareRoot(factor, magic, impacts[i]);
      } else {
        for (int i = 0; i < count; i++) sums[offsets[i]] += contribution(impacts[i]);
      }
    }
  }

  /** A distinct term of the query; {@code positive} when one of its slots is, and may raise a score. */
  record PlannedTerm(String text, List<Slot> slots, boolean positive) {}

  /** Impacts beyond this still score right; only the last bits of their powers are then rounded. */
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

  /** The channels of the operands of all products that documents can match. */
  List<Integer> operandChannels() {
    return operandChannels;
  }

  private ScoreColumn plan(ScoringTree tree) {
    if (tree instanceof ScoringTree.Linear linear) return planLinear(linear.weights());
    if (tree instanceof ScoringTree.Product product) return planProduct(product);
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

  private ScoreColumn planProduct(ScoringTree.Product product) {
    boolean positive = product.weight() > 0;
    Map<Map<String, Double>, Integer> known = new LinkedHashMap<>();
    int[] channels = new int[product.operands().size()];
    for (int i = 0; i < channels.length; i++) {
      channels[i] = known.computeIfAbsent(product.operands().get(i), o -> planOperand(o, product.power(), positive));
    }
    if (positive) operandChannels.addAll(known.values());
    ScoreColumn.Product column = new ScoreColumn.Product(channels, product.root(), Math.abs(product.weight()));
    return positive ? column : new ScoreColumn.Penalty(column);
  }

  private int planOperand(Map<String, Double> operand, double power, boolean positive) {
    int channel = addChannel();
    double largest = operand.values().stream().mapToDouble(Double::doubleValue).max().orElse(1);
    double largestPower = Powers.of(largest, power) * Powers.of(LARGEST_IMPACT, power);
    double magic = FixedPoint.roundingMagic(largestPower);
    double least = FixedPoint.leastPower(largestPower);
    operand.forEach(
        (term, weight) -> {
          double factor = power == 1 ? FixedPoint.weight(weight, largest) : Math.max(Powers.of(weight, power), least);
          addSlot(term, new Slot(channel, positive, factor, power, magic));
        });
    return channel;
  }

  private int addChannel() {
    return channels++;
  }

  private void addSlot(String term, Slot slot) {
    slots.computeIfAbsent(term, key -> new ArrayList<>()).add(slot);
  }
}
