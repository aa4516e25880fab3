package io.compneg;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A scoring tree laid out for scoring: its nodes as {@link NodeScorer}s, and its terms with what each contributes.
 *
 * <p>Every leaf owns <em>accumulators</em>: a linear leaf one for its positive and one for its negative terms, a
 * product one for each distinct operand. An accumulator holds a non-negative sum for each document. A term that occurs
 * in several leaves is one {@link QueryTerm} with several {@link Contribution}s, so its postings are read once.
 */
final class QueryPlan {
  /** What an impact of a term adds to one accumulator: {@code factor · impact^power}, a {@link FixedPoint} number. */
  static final class Contribution {
    final int accumulator;
    final boolean positive;
    final double power;
    final double factor;
    final double rounding;
    private final double[] powers; // null for the powers 1 and 1/2, which need no table

    private Contribution(int accumulator, boolean positive, double factor, double power, double rounding) {
      this.accumulator = accumulator;
      this.positive = positive;
      this.power = power;
      this.factor = factor;
      this.rounding = rounding;
      this.powers = power == 1 || power == 0.5 ? null : ImpactPowers.table(power);
    }

    boolean isTabulated() {
      return powers != null;
    }

    double of(int impact) {
      if (power == 1) return linear(factor, impact);
      if (power == 0.5) return squareRoot(factor, rounding, impact);
      return (factor * ImpactPowers.of(impact, power, powers) + rounding) - rounding;
    }

    static double linear(double factor, int impact) {
      return factor * impact;
    }

    static double squareRoot(double factor, double rounding, int impact) {
      return (factor * Math.sqrt(impact) + rounding) - rounding;
    }

    /** Adds the contributions of some impacts, each at its offset, to the accumulator's sums. */
    void addAll(double[] sums, int[] offsets, int[] impacts, int count) {
      double factor = this.factor; // in locals: a field would be loaded anew for every posting
      double rounding = this.rounding;
      if (power == 1) {
        for (int i = 0; i < count; i++) sums[offsets[i]] += linear(factor, impacts[i]);
      } else if (power == 0.5) {
        for (int i = 0; i < count; i++) sums[offsets[i]] += squareRoot(factor, rounding, impacts[i]);
      } else {
        for (int i = 0; i < count; i++) sums[offsets[i]] += of(impacts[i]);
      }
    }
  }

  /** A distinct term of the query; {@code positive} when one of its contributions is, so that it may raise a score. */
  record QueryTerm(String text, List<Contribution> contributions, boolean positive) {}

  /** Impacts beyond this still score right; only the last bits of their powers are then rounded. */
  private static final double LARGEST_IMPACT = 1 << 20;

  final List<QueryTerm> terms = new ArrayList<>();
  final NodeScorer root;
  private final List<Integer> operandAccumulators = new ArrayList<>();
  private int accumulators;
  private final Map<String, List<Contribution>> contributions = new LinkedHashMap<>();

  QueryPlan(ScoringTree tree) {
    root = plan(tree, true);
    contributions.forEach(
        (text, list) -> terms.add(new QueryTerm(text, list, list.stream().anyMatch(each -> each.positive))));
  }

  /** How many accumulators there are. */
  int accumulators() {
    return accumulators;
  }

  /** The accumulators of the operands of all products of positive weight. */
  List<Integer> operandAccumulators() {
    return operandAccumulators;
  }

  /** Lays out a tree; {@code raises} is false for what a damped score excludes, since that only lowers scores. */
  private NodeScorer plan(ScoringTree tree, boolean raises) {
    if (tree instanceof ScoringTree.Linear linear) return planLinear(linear.weights(), raises);
    if (tree instanceof ScoringTree.Product product) return planProduct(product, raises);
    if (tree instanceof ScoringTree.Max max) return new NodeScorer.Max(planAll(max.children(), true));
    if (tree instanceof ScoringTree.Sum sum) return new NodeScorer.Sum(planAll(sum.children(), true));
    ScoringTree.Damped damped = (ScoringTree.Damped) tree;
    NodeScorer child = plan(damped.child(), true);
    return new NodeScorer.Damped(child, planAll(damped.excluded(), false), damped);
  }

  private NodeScorer[] planAll(List<ScoringTree> children, boolean raises) {
    return children.stream().map(child -> plan(child, raises)).toList().toArray(new NodeScorer[0]);
  }

  private NodeScorer planLinear(Map<String, Double> weights, boolean raises) {
    double largest = weights.values().stream().mapToDouble(Math::abs).max().orElse(1);
    int positive = accumulators++;
    boolean signed = weights.values().stream().anyMatch(weight -> weight < 0);
    int negative = signed ? accumulators++ : -1;
    weights.forEach((term, weight) -> {
      double fixed = FixedPoint.weight(Math.abs(weight), largest);
      add(term, new Contribution(weight > 0 ? positive : negative, raises && weight > 0, fixed, 1, 0));
    });
    return new NodeScorer.Linear(positive, negative);
  }

  private NodeScorer planProduct(ScoringTree.Product product, boolean raises) {
    boolean positive = raises && product.weight() > 0;
    Map<Map<String, Double>, Integer> planned = new LinkedHashMap<>();
    int[] operands = new int[product.operands().size()];
    for (int i = 0; i < operands.length; i++) {
      operands[i] = planned.computeIfAbsent(product.operands().get(i), o -> planOperand(o, product.power(), positive));
    }
    if (positive) operandAccumulators.addAll(planned.values());
    NodeScorer.Product scorer = new NodeScorer.Product(operands, product.root(), Math.abs(product.weight()));
    return product.weight() > 0 ? scorer : new NodeScorer.NegativeProduct(scorer);
  }

  private int planOperand(Map<String, Double> operand, double power, boolean positive) {
    int accumulator = accumulators++;
    double largest = operand.values().stream().mapToDouble(Double::doubleValue).max().orElse(1);
    double largestPower = ImpactPowers.of(largest, power) * ImpactPowers.of(LARGEST_IMPACT, power);
    double rounding = FixedPoint.roundingConstant(largestPower);
    double least = FixedPoint.leastPower(largestPower);
    operand.forEach((term, weight) -> {
      double factor = power == 1 ? FixedPoint.weight(weight, largest) : Math.max(ImpactPowers.of(weight, power), least);
      add(term, new Contribution(accumulator, positive, factor, power, rounding));
    });
    return accumulator;
  }

  private void add(String term, Contribution contribution) {
    contributions.computeIfAbsent(term, key -> new ArrayList<>()).add(contribution);
  }
}
