package io.compneg;

import io.compneg.QueryPlan.Slot;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.util.Bits;

/**
 * Exact top-k scoring of a plan over one segment, window by window.
 *
 * <p>Each window of documents is scored in three steps, after MaxScore (Turtle and Flood 1995) with Lucene's
 * block maxima:
 *
 * <ol>
 *   <li><b>Partition.</b> Terms whose largest impacts in the window cannot, together, lift a document over
 *       the k-th score are <em>optional</em>; a document must hold one of the other, <em>required</em>,
 *       terms. Terms of a conjunction are optional as soon as one of its operands is required in full:
 *       without it the product is 0. No required term: skip the window. Else optional terms that are rare
 *       become required after all, because knowing them is cheaper than bounding them.
 *   <li><b>Gather.</b> The required terms are read in full into the channels; the documents they touch are
 *       the candidates.
 *   <li><b>Complete.</b> The optional terms are added, heaviest first, and candidates that can no longer win
 *       are dropped in between. Negative terms come last: they only lower a score, so the bounds never needed
 *       them, and few candidates are left.
 * </ol>
 *
 * <p>Bounds hold to the last bit: contributions are {@link FixedPoint} numbers whose sums are exact, and
 * products, roots, sums and the final rounding to float are monotone.
 */
final class WindowScorer {
  /** Documents a window: its sums should stay in the processor's nearest caches. */
  static final int WINDOW = 4096;

  /** Looking a document up costs about as much as reading this many postings. */
  private static final double LOOK_UP_COST = 6;

  /** A term with fewer postings a window is rare: reading them costs less than going over the window once. */
  private static final double RARE = WINDOW / 16.0;

  private final QueryPlan plan;
  private final ScoreSink top;
  private final Statistics statistics;

  private final double[][] channels;
  private final double[] rest;
  private final double[] trial;
  private final double[] nothing;
  private final int[] candidates = new int[WINDOW];
  private final int[] offsets = new int[WINDOW];
  private final int[] impacts = new int[WINDOW];
  private int candidateCount;

  private LeafReaderContext leaf;
  private TermCursor[] cursors;
  private List<TermCursor> negatives;

  /** How much work a search was, for benchmarks. */
  static final class Statistics {
    long windows;
    long windowsSkipped;
    long postingsRead;
    long documentsScored;

    void add(Statistics other) {
      windows += other.windows;
      windowsSkipped += other.windowsSkipped;
      postingsRead += other.postingsRead;
      documentsScored += other.documentsScored;
    }

    long[] toArray() {
      return new long[] {windows, windowsSkipped, postingsRead, documentsScored};
    }
  }

  WindowScorer(QueryPlan plan, ScoreSink top, Statistics statistics) {
    this.plan = plan;
    this.top = top;
    this.statistics = statistics;
    channels = new double[plan.channels()][WINDOW];
    rest = new double[plan.channels()];
    trial = new double[plan.channels()];
    nothing = new double[plan.channels()];
  }

  /** Begins a segment; {@code positives} and {@code negatives} are its cursors, either may be empty. */
  void enter(LeafReaderContext leaf, List<TermCursor> positives, List<TermCursor> negatives) {
    this.leaf = leaf;
    this.cursors = positives.toArray(TermCursor[]::new);
    this.negatives = negatives;
  }

  /** Scores the whole segment. */
  void scoreSegment() throws IOException {
    int maxDoc = leaf.reader().maxDoc();
    for (int from = 0; from < maxDoc; from += WINDOW) scoreWindow(from, Math.min(maxDoc, from + WINDOW));
  }

  /** Scores the documents {@code [from, to)}, at most {@link #WINDOW}; windows come in ascending order. */
  void scoreWindow(int from, int to) throws IOException {
    statistics.windows++;
    int required = partition(cursors, from, to);
    if (required == 0 || !gather(cursors, required, from, to)) {
      statistics.windowsSkipped++;
      return;
    }
    selectCandidates(from, to, leaf.reader().getLiveDocs());
    complete(cursors, required, from, to);
    for (int i = 0; i < negatives.size() && candidateCount > 0; i++) add(negatives.get(i), from, to);
    collect(leaf.docBase + from);
  }

  /**
   * Orders the cursors into required ones, then optional ones by descending share; sets {@link #rest};
   * returns how many are required.
   */
  private int partition(TermCursor[] cursors, int from, int to) throws IOException {
    Arrays.fill(trial, 0);
    for (TermCursor cursor : cursors) {
      cursor.enterWindow(from, to);
      grow(trial, cursor, 1);
    }
    Arrays.fill(rest, 0);
    if (cannotWin(trial)) return 0;
    double full = plan.root.gain(trial);
    for (TermCursor cursor : cursors) {
      grow(trial, cursor, -1);
      cursor.share = full - plan.root.gain(trial);
      grow(trial, cursor, 1);
    }
    return chooseRequired(cursors);
  }

  /**
   * Makes terms optional greedily, the costliest for the least of the bound first. A conjunction offers a
   * choice: any one of its operands may be the required one. So the greedy choice is made once for every
   * operand, its terms kept until last, and the cheapest outcome is taken.
   */
  private int chooseRequired(TermCursor[] cursors) {
    for (TermCursor cursor : cursors) cursor.order = cursor.share / cursor.density;
    sortByOrder(cursors);
    double least = Double.POSITIVE_INFINITY;
    int best = -1;
    for (int channel : plan.operandChannels()) {
      double cost = makeOptional(cursors, channel);
      if (cost < least) {
        least = cost;
        best = channel;
      }
    }
    double cost = makeOptional(cursors, best);
    requireRare(cursors, cost);
    int required = 0;
    for (TermCursor cursor : cursors) {
      cursor.order = cursor.optional ? -cursor.share : Double.NEGATIVE_INFINITY;
      if (!cursor.optional) required++;
    }
    sortByOrder(cursors);
    return required;
  }

  /**
   * Requires rare terms too. Most documents lack a rare term, yet all are granted its largest impact until it
   * is read, and a conjunction multiplies what it grants. Once the rare terms are known exactly, far fewer
   * candidates are left to look up in the frequent ones. No term is read that costs more than looking up, in
   * it, every posting of the terms required so far.
   *
   * @param cost postings of the terms required so far
   */
  private void requireRare(TermCursor[] cursors, double cost) {
    double limit = Math.min(RARE, cost * LOOK_UP_COST);
    for (TermCursor cursor : cursors) {
      if (!cursor.optional || cursor.windowImpact == 0 || cursor.density >= limit) continue;
      cursor.optional = false;
      grow(rest, cursor, -1);
    }
  }

  /** An insertion sort: the order changes little from window to window. */
  private static void sortByOrder(TermCursor[] cursors) {
    for (int i = 1; i < cursors.length; i++) {
      TermCursor cursor = cursors[i];
      int hole = i;
      for (; hole > 0 && cursors[hole - 1].order > cursor.order; hole--) cursors[hole] = cursors[hole - 1];
      cursors[hole] = cursor;
    }
  }

  /**
   * Marks the cursors, those of {@code channel} last; sets {@link #rest}; returns how many postings the
   * required ones have here.
   */
  private double makeOptional(TermCursor[] cursors, int channel) {
    Arrays.fill(rest, 0);
    double cost = 0;
    for (int pass = 0; pass < 2; pass++) {
      for (TermCursor cursor : cursors) {
        if (cursor.feeds(channel) != (pass == 1)) continue;
        grow(rest, cursor, 1);
        cursor.optional = cannotWin(rest);
        if (!cursor.optional) {
          grow(rest, cursor, -1);
          cost += cursor.windowImpact == 0 ? 0 : cursor.density;
        }
      }
    }
    return cost;
  }

  private boolean cannotWin(double[] sums) {
    return !(plan.root.gain(sums) > limit());
  }

  /**
   * The gain that a document must exceed to be worth looking at. A gain that rounds to the k-th score may
   * still win by its id, and whatever rounds to that score is above the float below it.
   */
  private double limit() {
    return Math.max(0, Math.nextDown(top.threshold()));
  }

  /**
   * Adds (or with −1 takes away) what the cursor's terms can contribute in this window. Exact, so it can be
   * undone.
   */
  private static void grow(double[] bounds, TermCursor cursor, int sign) {
    if (cursor.windowImpact == 0) return;
    for (Slot slot : cursor.slots) {
      if (slot.positive) bounds[slot.channel] += sign * slot.contribution(cursor.windowImpact);
    }
  }

  /** Reads the required terms into the channels; false when the window holds none of their postings. */
  private boolean gather(TermCursor[] cursors, int required, int from, int to) throws IOException {
    for (double[] channel : channels) Arrays.fill(channel, 0, to - from, 0);
    int gathered = 0;
    for (int i = 0; i < required; i++) {
      gathered += read(cursors[i], from, to);
    }
    statistics.postingsRead += gathered;
    return gathered > 0;
  }

  /**
   * Documents without a required term drop out by themselves: their bound is that of the optional terms,
   * which cannot win.
   */
  private void selectCandidates(int from, int to, Bits live) {
    plan.root.boundAll(channels, rest, to - from);
    double[] gain = plan.root.gain;
    double limit = limit();
    int kept = 0;
    for (int i = 0; i < to - from; i++) {
      candidates[kept] = i;
      if (gain[i] > limit) kept++;
    }
    candidateCount = live == null ? kept : keepLive(live, from, kept);
  }

  private int keepLive(Bits live, int from, int count) {
    int kept = 0;
    for (int i = 0; i < count; i++) {
      candidates[kept] = candidates[i];
      if (live.get(from + candidates[i])) kept++;
    }
    return kept;
  }

  private void complete(TermCursor[] cursors, int required, int from, int to) throws IOException {
    for (int i = required; i < cursors.length && candidateCount > 0; i++) {
      if (cursors[i].windowImpact == 0) continue;
      add(cursors[i], from, to);
      grow(rest, cursors[i], -1);
      dropLosers();
    }
  }

  /** Adds a term for the candidates, by whichever way is cheaper. */
  private void add(TermCursor cursor, int from, int to) throws IOException {
    if (cursor.docId() >= to) return;
    if (candidateCount * LOOK_UP_COST > cursor.density) {
      statistics.postingsRead += read(cursor, from, to);
    } else {
      int count = cursor.lookUp(from, candidates, candidateCount, offsets, impacts);
      statistics.postingsRead += count;
      addTo(cursor, count);
    }
  }

  private int read(TermCursor cursor, int from, int to) throws IOException {
    Slot first = cursor.slots[0];
    if (cursor.slots.length == 1 && !first.isTabulated()) return cursor.readInto(from, to, first, channels[first.channel]);
    int count = cursor.read(from, to, offsets, impacts);
    addTo(cursor, count);
    return count;
  }

  private void addTo(TermCursor cursor, int count) {
    for (Slot slot : cursor.slots) slot.addAll(channels[slot.channel], offsets, impacts, count);
  }

  private void dropLosers() {
    plan.root.bound(channels, rest, candidates, candidateCount);
    double[] gain = plan.root.gain;
    double limit = limit();
    int kept = 0;
    for (int i = 0; i < candidateCount; i++) {
      candidates[kept] = candidates[i];
      if (gain[i] > limit) kept++;
    }
    candidateCount = kept;
  }

  private void collect(int docBase) {
    statistics.documentsScored += candidateCount;
    plan.root.bound(channels, nothing, candidates, candidateCount);
    plan.root.score(channels, candidates, candidateCount);
    double[] value = plan.root.value;
    for (int i = 0; i < candidateCount; i++) {
      float score = finite(value[i]);
      if (score >= top.threshold()) top.offer(score, docBase + candidates[i]);
    }
  }

  /** The score as it is reported. */
  static float finite(double value) {
    float score = (float) value + 0f; // + 0 makes −0 and 0 equal
    if (Float.isFinite(score)) return score;
    throw new IllegalArgumentException("a score is beyond 3.4e38: the query has too large weights or too many conjuncts");
  }
}
