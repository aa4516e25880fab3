package io.compneg.search;

import io.compneg.blocks.Contribution;
import io.compneg.blocks.DocumentWindow;
import io.compneg.blocks.TermPostings;
import java.io.IOException;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;

/**
 * Which terms of a query are essential in a window of documents, and what the others can add; see {@link
 * WindowScorer}.
 */
final class Partition {
  /** A term that a smaller share of documents has is rare: reading it costs less than going over all of them once. */
  private static final double RARE = 1 / 16.0;

  /** What it costs to bound a candidate once more, where reading a posting costs 1; see {@link TermPostings}. */
  private static final double BOUNDING = 2;

  /** So many windows are read whole before it is tried again to leave terms out. */
  private static final int WHOLE_WINDOWS = 8;

  private static final Comparator<Share> BY_KEY = Comparator.comparingDouble(share -> share.key);

  /** For each accumulator: what terms that are not read yet can add at most. */
  final double[] nonEssentialBounds;

  private final QueryPlan plan;
  private final double[] windowBounds; // for each accumulator: what all positive terms can add at most
  private Share[] shares; // in the order of the last window
  private NodeScorer root;
  private List<Integer> operands; // of its products
  private double nonCompetitive;
  private int wholeWindows; // that are still to be read whole

  /** What a term has to do with the upper bound of the current window. */
  private static final class Share {
    final TermCursor cursor;
    double ofBound; // how much lower it would be without the term
    double key; // by which the shares are sorted at the moment
    boolean essential;

    Share(TermCursor cursor) {
      this.cursor = cursor;
    }
  }

  Partition(QueryPlan plan) {
    this.plan = plan;
    nonEssentialBounds = new double[plan.accumulators()];
    windowBounds = new double[plan.accumulators()];
  }

  /** Begins a tree, which has the accumulators {@code [from, to)}, and the terms that may raise its score. */
  void begin(NodeScorer root, int from, int to, List<TermCursor> terms) {
    shares = new Share[terms.size()];
    for (int i = 0; i < shares.length; i++) shares[i] = new Share(terms.get(i));
    this.root = root;
    wholeWindows = 0;
    operands = plan.operandAccumulators().stream().filter(operand -> from <= operand && operand < to).toList();
  }

  /**
   * Orders the terms: essential terms first, then the others by descending share of the upper bound. Sets {@link
   * #nonEssentialBounds}.
   *
   * @param sparse whether no term is to be essential
   * @param nonCompetitive the largest upper bound that is not competitive
   * @param candidateShare the share of the documents that were candidates when terms were last left out
   * @return how many terms are essential; −1 when no document of the window is competitive
   */
  int partition(DocumentWindow window, boolean sparse, double nonCompetitive, double candidateShare)
      throws IOException {
    if (wholeWindows > 0) {
      wholeWindows--;
      return shares.length;
    }
    this.nonCompetitive = nonCompetitive;
    Arrays.fill(windowBounds, 0);
    for (Share share : shares) {
      share.cursor.enterWindow(window);
      addBound(windowBounds, share.cursor, 1);
    }
    Arrays.fill(nonEssentialBounds, 0);
    if (!isCompetitive(windowBounds)) return -1;
    int choices = affordableChoices(window.size());
    if (choices == 0) return shares.length;
    double upperBound = root.upperBound(windowBounds);
    for (Share share : shares) {
      addBound(windowBounds, share.cursor, -1);
      share.ofBound = upperBound - root.upperBound(windowBounds);
      addBound(windowBounds, share.cursor, 1);
      share.key = -share.ofBound;
    }
    if (sparse) {
      System.arraycopy(windowBounds, 0, nonEssentialBounds, 0, windowBounds.length);
      Arrays.sort(shares, BY_KEY);
      return 0;
    }
    int essential = chooseEssential(choices);
    if (essential == shares.length || isLookingUpCheaper(essential, candidateShare)) return essential;
    Arrays.fill(nonEssentialBounds, 0);
    wholeWindows = WHOLE_WINDOWS;
    return shares.length;
  }

  /** Whether the non-essential terms are better looked up for the candidates, and these bounded, than read. */
  private boolean isLookingUpCheaper(int essential, double candidateShare) {
    double reading = 0;
    double lookingUp = 0;
    for (int i = essential; i < shares.length; i++) {
      TermCursor cursor = shares[i].cursor;
      if (cursor.windowMaxImpact() == 0) continue;
      reading += cursor.readingCost;
      lookingUp += Math.min(cursor.readingCost, candidateShare * cursor.lookUpCost) + candidateShare * BOUNDING;
    }
    return lookingUp <= reading;
  }

  /**
   * How many ways to choose the essential terms may be tried. A try evaluates the tree once for each term, so that it
   * grows with the square of the query, while reading all terms and bounding all documents does not. No more tries are
   * made than cost as much as that.
   *
   * @return 0 when all terms must be essential, since even one try costs too much
   */
  private int affordableChoices(int documents) {
    double postings = 0;
    for (Share share : shares) postings += share.cursor.readingCost * documents;
    double reading = postings + (double) plan.size * documents;
    double once = (double) plan.size * shares.length;
    return (int) Math.max(0, reading / once - 2); // the shares of the bound are one try, the last choice another
  }

  /**
   * Makes terms non-essential greedily: first those that cost most and take least from the upper bound. A conjunction
   * offers a choice, since any one of its operands may be the essential one. So the greedy choice is made once for
   * every operand, its terms kept until last, and the cheapest outcome is taken.
   *
   * @param choices the most operands to try
   */
  private int chooseEssential(int choices) {
    for (Share share : shares) share.key = share.ofBound / share.cursor.readingCost;
    Arrays.sort(shares, BY_KEY);
    double leastCost = Double.POSITIVE_INFINITY;
    int essentialOperand = -1;
    for (int operand : operands.subList(0, Math.min(choices, operands.size()))) {
      double cost = markNonEssential(operand);
      if (cost < leastCost) {
        leastCost = cost;
        essentialOperand = operand;
      }
    }
    double cost = markNonEssential(essentialOperand);
    promoteRare(cost);
    int essential = 0;
    for (Share share : shares) {
      share.key = share.essential ? Double.NEGATIVE_INFINITY : -share.ofBound;
      if (share.essential) essential++;
    }
    Arrays.sort(shares, BY_KEY);
    return essential;
  }

  /**
   * Marks the terms and sets {@link #nonEssentialBounds}.
   *
   * @param operand the accumulator whose terms are marked last; −1 for none
   * @return how many postings the essential terms have, per document
   */
  private double markNonEssential(int operand) {
    Arrays.fill(nonEssentialBounds, 0);
    double cost = 0;
    for (int pass = 0; pass < 2; pass++) {
      for (Share share : shares) {
        TermCursor cursor = share.cursor;
        if (cursor.contributesTo(operand, operand + 1) != (pass == 1)) continue;
        addBound(nonEssentialBounds, cursor, 1);
        share.essential = isCompetitive(nonEssentialBounds);
        if (share.essential) {
          addBound(nonEssentialBounds, cursor, -1);
          cost += cursor.windowMaxImpact() == 0 ? 0 : cursor.readingCost;
        }
      }
    }
    return cost;
  }

  /**
   * Makes rare terms essential, too. Most documents lack a rare term, yet the upper bound of each includes its maximum
   * impact until it is read, and a conjunction multiplies that. Once the rare terms are known exactly, far fewer
   * candidates are left to look up in the frequent ones. A term is not read when it costs more than looking up, in
   * it, every posting of the terms that are essential so far.
   *
   * @param cost postings, per document, of the terms that are essential so far
   */
  private void promoteRare(double cost) {
    double maxDensity = Math.min(RARE, cost * TermPostings.LOOK_UP_COST);
    for (Share share : shares) {
      TermCursor cursor = share.cursor;
      if (share.essential || cursor.windowMaxImpact() == 0 || cursor.density >= maxDensity) continue;
      share.essential = true;
      addBound(nonEssentialBounds, cursor, -1);
    }
  }

  private boolean isCompetitive(double[] sums) {
    return root.upperBound(sums) > nonCompetitive;
  }

  /** How many terms there are. */
  int size() {
    return shares.length;
  }

  /** A term, by its place in the order of the window. */
  TermCursor term(int place) {
    return shares[place].cursor;
  }

  /** Takes a term out of the bounds, because it is read. */
  void remove(TermCursor cursor) {
    addBound(nonEssentialBounds, cursor, -1);
  }

  /** Adds (or with −1 subtracts) what the term can contribute in this window. Exact, so it can be undone. */
  private static void addBound(double[] bounds, TermCursor cursor, int sign) {
    if (cursor.windowMaxImpact() == 0) return;
    for (Contribution contribution : cursor.contributions) {
      if (contribution.positive) bounds[contribution.accumulator] += sign * contribution.of(cursor.windowMaxImpact());
    }
  }
}
