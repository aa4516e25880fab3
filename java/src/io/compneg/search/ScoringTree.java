package io.compneg.search;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.exc.MismatchedInputException;
import io.compneg.index.DocumentFilter;
import io.compneg.index.Json;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;

/**
 * A composed query, read from one JSON line: {@code {"vector": {term: weight}}} for a signed linear query, or {@code
 * {"score": tree}} with {@code product}, {@code max}, {@code sum} and {@code damped} over vectors.
 */
public sealed interface ScoringTree {
  /** Σ weight · impact over signed weights. */
  record Linear(Map<String, Double> weights) implements ScoringTree {
    @Override
    public NodeScorer scorer(QueryPlan plan, boolean raises) {
      return plan.linear(weights, raises);
    }
  }

  /**
   * weight · (Π over the n operands of Σ (weight · impact)^power)^(1/root). With the power 1/n and the root 1 these are
   * Combined Pseudo-Terms (Krasakis, Yates and Kanoulas, Eq. 6 to 8) in their factored form. A product of negative
   * weight only lowers the scores of a sum, as negative terms do: no document matches it.
   */
  record Product(List<Map<String, Double>> operands, double power, int root, double weight) implements ScoringTree {
    @Override
    public int size() {
      return 1 + operands.size();
    }

    @Override
    public NodeScorer scorer(QueryPlan plan, boolean raises) {
      return plan.product(this, raises);
    }
  }

  /** The best of the alternatives that the document matches. */
  record Max(List<ScoringTree> children) implements ScoringTree {
    @Override
    public NodeScorer scorer(QueryPlan plan, boolean raises) {
      return new NodeScorer.Max(plan.window, plan.scorers(children, raises));
    }
  }

  /** The sum of the parts. */
  record Sum(List<ScoringTree> children) implements ScoringTree {
    @Override
    public NodeScorer scorer(QueryPlan plan, boolean raises) {
      return new NodeScorer.Sum(plan.window, plan.scorers(children, raises));
    }
  }

  /**
   * max(child · (1 − weight · r³), min(child, floor) · (1 − 0.02 r³)), where r is the largest ratio of the score under
   * an excluded part to its best score, at most 1. A score of the child that is 0 or less stays as it is. A document
   * matches when it matches the child.
   *
   * @param excluded vectors of positive weights, products of positive weight, and damped ones of these
   * @param best the best score of each excluded part in the index
   */
  record Damped(ScoringTree child, List<ScoringTree> excluded, List<Double> best, double weight, double floor)
      implements ScoringTree {
    @Override
    public List<ScoringTree> children() {
      return Stream.concat(Stream.of(child), excluded.stream()).toList();
    }

    @Override
    public NodeScorer scorer(QueryPlan plan, boolean raises) {
      NodeScorer scorer = child.scorer(plan, raises); // its accumulators come before those of the excluded parts
      return new LoweringScorer.Damped(plan.window, scorer, plan.scorers(excluded, false), this);
    }
  }

  /**
   * The child, for the documents whose score is above 0 under every required part, and above its limit under no
   * excluded part. No other document matches.
   *
   * @param excluded vectors and products as those of {@link Damped}, and filters
   * @param above the limit of each excluded part; of a filter it does not count
   * @param required vectors of positive weights
   */
  record Excluding(ScoringTree child, List<ScoringTree> excluded, List<Double> above, List<ScoringTree> required)
      implements ScoringTree {
    @Override
    public List<ScoringTree> children() {
      return Stream.of(List.of(child), excluded, required).flatMap(List::stream).toList();
    }

    @Override
    public NodeScorer scorer(QueryPlan plan, boolean raises) {
      NodeScorer scorer = child.scorer(plan, raises);
      NodeScorer[] barred = plan.scorers(excluded, false);
      return new LoweringScorer.Excluding(plan.window, scorer, barred, above, plan.scorers(required, false));
    }
  }

  /** The score 1 for the documents that a filter names; only an excluded part. */
  record FilterNode(DocumentFilter filter) implements ScoringTree {
    @Override
    public NodeScorer scorer(QueryPlan plan, boolean raises) {
      return plan.filter(filter);
    }
  }

  /** The score 0 for every document; only a whole query. */
  record All() implements ScoringTree {
    @Override
    public NodeScorer scorer(QueryPlan plan, boolean raises) {
      return plan.linear(Map.of(), raises); // no term finds a document: AllDocuments does
    }
  }

  /** The nodes below; none below a leaf. */
  default List<ScoringTree> children() {
    return List.of();
  }

  /** How many nodes there are, with an operand of a product counted as one. */
  default int size() {
    return 1 + children().stream().mapToInt(ScoringTree::size).sum();
  }

  /** Lays the tree out in a plan; {@code raises} is false below what only lowers scores. */
  NodeScorer scorer(QueryPlan plan, boolean raises);

  Set<String> PRODUCT_FIELDS = Set.of("product", "power", "root", "weight");
  Set<String> DAMPED_FIELDS = Set.of("damped", "excluded", "best", "weight", "floor");
  Set<String> EXCLUDING_FIELDS = Set.of("excluding", "excluded", "above", "required");

  /** Scores of larger weights could leave the range of a float. */
  double LARGEST_WEIGHT = 1e18;

  /** As small as products of weights may be large: what is divided by one has such a weight. */
  double SMALLEST_PRODUCT_WEIGHT = 1e-288;

  /** The most for power · operands, and for a root: higher powers of weights could leave the range of a double. */
  int LARGEST_DEGREE = 16;

  /**
   * Reads one JSON line.
   *
   * @throws IllegalArgumentException when the line is no composed query; the message says where and why
   */
  static ScoringTree parse(String line) {
    return of(json(line));
  }

  /** Reads the JSON of a line; see {@link #parse}. */
  static JsonNode json(String line) {
    try {
      return Json.MAPPER.readTree(line);
    } catch (MismatchedInputException e) {
      throw new IllegalArgumentException("a composed query is one JSON object, and more follows", e);
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException("a composed query is no JSON: " + e.getOriginalMessage(), e);
    }
  }

  /** The query that a JSON object holds; see {@link #parse}. */
  static ScoringTree of(JsonNode query) {
    if (query.has("score") && query.has("vector")) {
      throw new IllegalArgumentException("vector and score are two composed queries; leave out one");
    }
    JsonNode score = query.has("score") ? query.get("score") : query;
    if (score.size() == 1 && score.path("all").asBoolean()) return new All();
    if (query.has("score")) return tree(score);
    return query.has("vector") ? new Linear(vector(query.get("vector"), false)) : tree(query);
  }

  private static ScoringTree tree(JsonNode node) {
    if (node.has("product")) return product(node);
    if (node.has("damped")) return damped(node);
    if (node.has("excluding")) return excluding(node);
    if (node.size() == 1) {
      if (node.has("vector")) return new Linear(vector(node.get("vector"), false));
      if (node.has("max")) return new Max(children(node.get("max"), "max"));
      if (node.has("sum")) return new Sum(children(node.get("sum"), "sum"));
    }
    throw new IllegalArgumentException(
        "a score must be one of vector, product, max, sum, damped, excluding; got " + abbreviate(node));
  }

  private static Damped damped(JsonNode node) {
    checkFields(node, DAMPED_FIELDS, "a damped score has no '%s', only damped, excluded, best, weight, floor");
    List<ScoringTree> excluded = children(node.path("excluded"), "list of excluded parts");
    for (ScoringTree part : excluded) {
      while (part instanceof Damped inner) part = inner.child();
      checkExcluded(part);
    }
    List<Double> best = new ArrayList<>();
    for (JsonNode score : node.path("best")) best.add(between(score, Double.MAX_VALUE, "best score"));
    if (best.size() != excluded.size()) {
      throw new IllegalArgumentException("a damped score needs a best score for each excluded part");
    }
    double weight = between(node.path("weight"), 1, "weight");
    JsonNode floor = node.path("floor");
    boolean none = floor.isMissingNode() || floor.isNumber() && floor.doubleValue() == 0;
    double kept = none ? 0 : between(floor, Double.MAX_VALUE, "floor");
    return new Damped(tree(node.get("damped")), excluded, best, weight, kept);
  }

  private static void checkExcluded(ScoringTree part) {
    boolean lowers = part instanceof Linear linear
        ? !linear.weights().isEmpty() && linear.weights().values().stream().allMatch(weight -> weight > 0)
        : part instanceof Product product && product.weight() > 0;
    if (!lowers)
      throw new IllegalArgumentException("an excluded or required part must be a vector or a product above 0");
  }

  private static Excluding excluding(JsonNode node) {
    checkFields(node, EXCLUDING_FIELDS, "what excludes has no '%s', only excluding, excluded, above, required");
    List<ScoringTree> excluded = new ArrayList<>();
    for (JsonNode part : node.path("excluded")) {
      boolean named = part.size() == 1 && part.has("filter");
      excluded.add(named ? new FilterNode(DocumentFilter.of(part.get("filter"))) : tree(part));
      if (!named) checkExcluded(excluded.getLast());
    }
    List<Double> above = new ArrayList<>();
    for (JsonNode limit : node.path("above")) above.add(limit.isNumber() ? limit.doubleValue() : Double.NaN);
    List<ScoringTree> required = new ArrayList<>();
    for (JsonNode part : node.path("required")) {
      required.add(tree(part));
      if (required.getLast() instanceof Linear)
        checkExcluded(required.getLast());
      else
        throw new IllegalArgumentException("a required part must be a vector, got " + abbreviate(part));
    }
    boolean none = excluded.isEmpty() && required.isEmpty();
    if (none || above.size() != excluded.size() || above.stream().anyMatch(limit -> !(limit >= 0))) {
      throw new IllegalArgumentException("what excludes needs excluded parts, and above a limit, 0 or more, for each");
    }
    for (int n = 0; n < above.size(); n++) {
      if (excluded.get(n) instanceof FilterNode) above.set(n, 0.0);
    }
    return new Excluding(tree(node.get("excluding")), excluded, above, required);
  }

  private static double between(JsonNode number, double most, String name) {
    double value = number.isNumber() ? number.doubleValue() : Double.NaN;
    if (value > 0 && value <= most) return value;
    throw new IllegalArgumentException(
        "the " + name + " of a damped score must be above 0 and at most " + most + ", got " + abbreviate(number));
  }

  private static void checkFields(JsonNode node, Set<String> known, String message) {
    for (var field : node.properties()) {
      if (!known.contains(field.getKey())) throw new IllegalArgumentException(message.formatted(field.getKey()));
    }
  }

  private static Product product(JsonNode node) {
    checkFields(node, PRODUCT_FIELDS, "a product has no '%s', only product, power, root, weight");
    List<Map<String, Double>> operands = new ArrayList<>();
    for (JsonNode operand : node.get("product")) {
      if (operand.size() != 1) {
        throw new IllegalArgumentException("an operand must be one vector, got " + abbreviate(operand));
      }
      operands.add(vector(operand.path("vector"), true));
    }
    if (operands.size() < 2) throw new IllegalArgumentException("a product needs two operands or more");
    double power = power(node.path("power"), operands.size());
    return new Product(operands, power, root(node.path("root")), productWeight(node.path("weight")));
  }

  private static double productWeight(JsonNode weight) {
    if (weight.isMissingNode()) return 1;
    double size = weight.isNumber() ? Math.abs(weight.doubleValue()) : Double.NaN;
    if (size >= SMALLEST_PRODUCT_WEIGHT && size <= LARGEST_WEIGHT) return weight.doubleValue();
    throw new IllegalArgumentException(
        "the weight of a product must be between 1e-288 and 1e18 in magnitude, got " + abbreviate(weight));
  }

  private static double power(JsonNode power, int operands) {
    if (power.isMissingNode()) return 1.0 / operands;
    double most = Math.min(1, (double) LARGEST_DEGREE / operands);
    if (power.isNumber() && power.doubleValue() > 0 && power.doubleValue() <= most) return power.doubleValue();
    throw new IllegalArgumentException(
        "a power of " + operands + " operands must be above 0 and at most " + most + ", got " + abbreviate(power));
  }

  private static int root(JsonNode root) {
    if (root.isMissingNode()) return 1;
    if (root.isInt() && root.intValue() >= 1 && root.intValue() <= LARGEST_DEGREE) return root.intValue();
    throw new IllegalArgumentException(
        "a root must be a whole number from 1 to " + LARGEST_DEGREE + ", got " + abbreviate(root));
  }

  private static List<ScoringTree> children(JsonNode array, String kind) {
    List<ScoringTree> children = new ArrayList<>();
    for (JsonNode child : array) children.add(tree(child));
    if (children.isEmpty()) throw new IllegalArgumentException("a " + kind + " needs one child or more");
    return children;
  }

  private static Map<String, Double> vector(JsonNode object, boolean positive) {
    if (!object.isObject()) throw new IllegalArgumentException("a vector must be an object, got " + abbreviate(object));
    Map<String, Double> weights = new LinkedHashMap<>();
    for (var field : object.properties()) {
      double weight = field.getValue().isNumber() ? field.getValue().doubleValue() : Double.NaN;
      if (!(Math.abs(weight) <= LARGEST_WEIGHT) || (positive && weight < 0)) {
        String wanted = positive ? "a number from 0 to 1e18" : "a number from -1e18 to 1e18";
        throw new IllegalArgumentException(
            "the weight of '" + field.getKey() + "' must be " + wanted + ", got " + abbreviate(field.getValue()));
      }
      if (weight != 0) weights.put(field.getKey(), weight);
    }
    return weights;
  }

  private static String abbreviate(JsonNode node) {
    String text = node.toString();
    return text.length() <= 80 ? text : text.substring(0, 80) + "...";
  }
}
