package io.compneg.search;

import io.compneg.blocks.Accumulators;
import io.compneg.blocks.Contribution;
import io.compneg.blocks.DocumentWindow;
import io.compneg.blocks.ImpactPowers;
import io.compneg.index.DocumentFilter;
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
  /** A distinct term of the query; {@code positive} when one of its contributions is, so that it may raise a score. */
  record QueryTerm(String text, Contribution[] contributions, boolean positive) {}

  /** One of the scores of which the best is taken; it owns the accumulators {@code [from, to)}. */
  record Alternative(NodeScorer node, int from, int to) {}

  /** More alternatives are not told apart. */
  private static final int MOST_ALTERNATIVES = 16;

  /** Impacts beyond this still score right; only the last bits of their powers are then rounded. */
  private static final double LARGEST_IMPACT = 1 << 20;

  /** The most documents of a window: its accumulators should stay in the processor's nearest caches. */
  private static final int LARGEST_WINDOW = 4096;

  private static final int SMALLEST_WINDOW = 64;

  /** What accumulators and nodes hold in a window, unless it is the smallest. */
  private static final int WINDOW_NUMBERS = 1 << 18;

  /** The most documents that are scored at once: fewer for a large tree, so that the memory it takes is bounded. */
  final int window;

  /** How many nodes the tree has, operands of products included. */
  final int size;

  final List<QueryTerm> terms = new ArrayList<>();

  /** The filters of excluded parts, by the accumulator that has a 1 for each document they name. */
  final Map<Integer, DocumentFilter> named = new LinkedHashMap<>();

  final NodeScorer root;

  /** The alternatives of which the whole query is the best; none where it is no such choice. */
  final List<Alternative> alternatives = new ArrayList<>();

  private final List<Integer> operandAccumulators = new ArrayList<>();
  private int accumulators;
  private int contributions;

  private final Map<String, List<Contribution>> byTerm = new LinkedHashMap<>();

  QueryPlan(ScoringTree tree) {
    size = tree.size();
    window = Math.max(SMALLEST_WINDOW, Math.min(LARGEST_WINDOW, WINDOW_NUMBERS / size & -DocumentWindow.BLOCK));
    if (tree instanceof ScoringTree.Max max && max.children().size() > 1
        && max.children().size() <= MOST_ALTERNATIVES) {
      root = planAlternatives(max.children());
    } else {
      root = tree.scorer(this, true);
    }
    byTerm.forEach((text, list) -> {
      boolean positive = list.stream().anyMatch(each -> each.positive);
      terms.add(new QueryTerm(text, list.toArray(new Contribution[0]), positive));
    });
  }

  private NodeScorer planAlternatives(List<ScoringTree> children) {
    for (ScoringTree child : children) {
      int from = accumulators;
      NodeScorer node = child.scorer(this, true); // its accumulators are those that are made here
      alternatives.add(new Alternative(node, from, accumulators));
    }
    return new NodeScorer.Max(window, alternatives.stream().map(Alternative::node).toArray(NodeScorer[] ::new));
  }

  /** How many accumulators there are. */
  int accumulators() {
    return accumulators;
  }

  /** Room for the sums of some documents. */
  Accumulators room(int documents) {
    return new Accumulators(accumulators, contributions, documents);
  }

  /** The accumulators of the operands of all products of positive weight. */
  List<Integer> operandAccumulators() {
    return operandAccumulators;
  }

  /** Lays out several trees; see {@link ScoringTree#scorer}. */
  NodeScorer[] scorers(List<ScoringTree> trees, boolean raises) {
    return trees.stream().map(tree -> tree.scorer(this, raises)).toList().toArray(new NodeScorer[0]);
  }

  /** Lays out a vector. */
  NodeScorer linear(Map<String, Double> weights, boolean raises) {
    double largest = weights.values().stream().mapToDouble(Math::abs).max().orElse(1);
    int positive = accumulators++;
    boolean signed = weights.values().stream().anyMatch(weight -> weight < 0);
    int negative = signed ? accumulators++ : -1;
    weights.forEach((term, weight) -> {
      double fixed = FixedPoint.weight(Math.abs(weight), largest);
      add(term, weight > 0 ? positive : negative, raises && weight > 0, fixed, 1, 0);
    });
    return new NodeScorer.Linear(window, positive, negative);
  }

  /** Lays out a product. */
  NodeScorer product(ScoringTree.Product product, boolean raises) {
    boolean positive = raises && product.weight() > 0;
    Map<Map<String, Double>, Integer> planned = new LinkedHashMap<>();
    int[] operands = new int[product.operands().size()];
    for (int i = 0; i < operands.length; i++) {
      operands[i] = planned.computeIfAbsent(product.operands().get(i), o -> planOperand(o, product.power(), positive));
    }
    if (positive) operandAccumulators.addAll(planned.values());
    NodeScorer.Product scorer = new NodeScorer.Product(window, operands, product.root(), Math.abs(product.weight()));
    return product.weight() > 0 ? scorer : new NodeScorer.NegativeProduct(window, scorer);
  }

  private int planOperand(Map<String, Double> operand, double power, boolean positive) {
    int accumulator = accumulators++;
    double largest = operand.values().stream().mapToDouble(Double::doubleValue).max().orElse(1);
    double largestPower = ImpactPowers.of(largest, power) * ImpactPowers.of(LARGEST_IMPACT, power);
    double rounding = FixedPoint.roundingConstant(largestPower);
    double least = FixedPoint.leastPower(largestPower);
    operand.forEach((term, weight) -> {
      double factor = power == 1 ? FixedPoint.weight(weight, largest) : Math.max(ImpactPowers.of(weight, power), least);
      add(term, accumulator, positive, factor, power, rounding);
    });
    return accumulator;
  }

  /** Lays out a filter, which gives the score 1 to the documents that it names. */
  NodeScorer filter(DocumentFilter filter) {
    named.put(accumulators, filter);
    return new NodeScorer.Linear(window, accumulators++, -1);
  }

  private void add(String term, int accumulator, boolean positive, double factor, double power, double rounding) {
    Contribution added = new Contribution(contributions++, accumulator, positive, factor, power, rounding);
    byTerm.computeIfAbsent(term, key -> new ArrayList<>()).add(added);
  }
}
