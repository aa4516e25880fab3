package io.compneg.search;

import io.compneg.blocks.Accumulators;
import io.compneg.blocks.DocumentWindow;
import io.compneg.search.QueryPlan.Alternative;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.lucene.util.Bits;

/**
 * Exact top-k scoring of a query plan, one window of a segment's documents after the other. {@link SegmentSearch}es
 * choose the windows. Each is scored in three steps:
 *
 * <ol>
 *   <li><b>Partition.</b> Terms whose maximum impacts in the window, together, cannot lift a document over the
 *       minimum competitive score are <em>non-essential</em>. A competitive document has one of the other,
 *       <em>essential</em>, terms. The terms of a conjunction are non-essential as soon as all terms of one of its
 *       operands are essential: without that operand the product is 0. A window without an essential term is
 *       skipped. At last, rare non-essential terms become essential after all, because to know them is cheaper than
 *       to bound them; and all do in some windows, where that is cheaper than looking up the candidates.
 *   <li><b>Accumulate.</b> The postings of the essential terms are read into the accumulators, term at a time. The
 *       documents whose upper bound is competitive are the candidates.
 *   <li><b>Complete.</b> The non-essential terms are added for the candidates, those with the largest share of the
 *       upper bound first, and the candidates that are no longer competitive are dropped in between. Negative terms
 *       come last: they only lower a score, so no upper bound needs them, and few candidates are left.
 * </ol>
 *
 * <p>Upper bounds hold to the last bit: contributions are {@link FixedPoint} numbers, whose sums are exact, and
 * products, roots, sums and the final rounding to float are monotone.
 *
 * <p>Sources: MaxScore, Turtle and Flood, Query Evaluation: Strategies and Optimizations, 1995; block maxima, Ding and
 * Suel, Faster Top-k Document Retrieval Using Block-Max Indexes, SIGIR 2011.
 */
final class WindowScorer {
  /** How fast it is forgotten that leaving terms out, or dropping candidates, did not pay. */
  private static final double FORGETTING = 0.5;

  /** The documents that are scored next. */
  final DocumentWindow window;

  private final QueryPlan plan;
  private final HitCollector collector;
  private final Statistics statistics;
  private final Accumulators accumulators;
  private final Partition partition;
  private final int[] candidates; // their places in the window
  private int candidateCount;
  private double candidateShare; // of the documents of a window, as far as it is known from windows with terms left out
  private double keptShare; // of the candidates, when some were dropped last

  private QuerySegment segment;
  private NodeScorer root; // of the query, or of the only alternative that is scored
  private List<TermCursor> negatives; // of its terms

  /** How much work a search was, for benchmarks. */
  static final class Statistics {
    long postingsRead;
    long documentsScored;

    void add(Statistics other) {
      postingsRead += other.postingsRead;
      documentsScored += other.documentsScored;
    }
  }

  WindowScorer(QueryPlan plan, HitCollector collector, Statistics statistics) {
    this.plan = plan;
    this.collector = collector;
    this.statistics = statistics;
    window = new DocumentWindow(plan.window);
    accumulators = plan.room(plan.window);
    partition = new Partition(plan);
    candidates = new int[plan.window];
  }

  /** Begins a segment; returns false when none of its documents can match. */
  boolean enter(QuerySegment segment) {
    this.segment = segment;
    choose(null);
    return partition.size() > 0;
  }

  /** The bounds of the blocks in the documents {@code [from, to)} of the segment, whose terms have block maxima. */
  BlockBounds blockBounds(int from, int to) {
    return new BlockBounds(plan, segment, from, to, accumulators);
  }

  /** Goes back to before the first document, to score one alternative alone, or with null the whole query. */
  void restart(Alternative only) throws IOException {
    choose(only);
    for (int i = 0; i < partition.size(); i++) partition.term(i).postings.rewind();
    for (TermCursor cursor : negatives) cursor.postings.rewind();
  }

  private void choose(Alternative only) {
    int from = only == null ? 0 : only.from();
    int to = only == null ? plan.accumulators() : only.to();
    root = only == null ? plan.root : only.node();
    candidateShare = 0;
    List<TermCursor> positives = new ArrayList<>();
    negatives = new ArrayList<>();
    for (TermCursor cursor : segment.cursors) {
      if (cursor.contributesTo(from, to)) (cursor.positive ? positives : negatives).add(cursor);
    }
    partition.begin(root, from, to, positives);
  }

  /** Scores the documents {@code [from, to)} of the segment, at most {@link QueryPlan#window}, behind the last ones. */
  void score(int from, int to) throws IOException {
    window.fill(from, to);
    score();
  }

  /** Scores the documents of the window. */
  void score() throws IOException {
    if (segment.allowed != null && !window.hasAny(segment.allowed)) return;
    int essential = partition.partition(window, segment.sparse, largestNonCompetitive(), candidateShare);
    if (essential < 0 || !accumulate(essential) && !segment.sparse) return;
    if (segment.sparse) {
      selectAllowed();
    } else {
      selectCandidates();
      boolean whole = essential == partition.size();
      candidateShare = whole ? candidateShare * FORGETTING : (double) candidateCount / window.size();
    }
    complete(essential);
    for (int i = 0; i < negatives.size() && candidateCount > 0; i++) addTerm(negatives.get(i));
    collect();
  }

  /**
   * The largest upper bound that is not competitive. A bound that rounds to the k-th score may still win by its id, and
   * whatever rounds to that score is above the float below it. A bound of 0 is that of a document that does not match.
   */
  double largestNonCompetitive() {
    return Math.max(0, Math.nextDown(collector.minCompetitiveScore()));
  }

  /** Reads the essential terms into the accumulators; false when the window holds none of their postings. */
  private boolean accumulate(int essential) throws IOException {
    accumulators.clear(window.size());
    for (var part : segment.named.entrySet()) {
      double[] sums = accumulators.sums[part.getKey()];
      for (int i = 0; i < window.size(); i++) sums[i] = part.getValue().get(window.doc(i)) ? 1 : 0;
    }
    int postings = 0;
    for (int i = 0; i < essential; i++) postings += partition.term(i).add(window, accumulators);
    accumulators.addWaiting(window);
    statistics.postingsRead += postings;
    return postings > 0;
  }

  /**
   * A document without an essential term drops out by itself: its upper bound is that of the non-essential terms, which
   * is not competitive.
   */
  private void selectCandidates() {
    root.boundWindow(accumulators.sums, partition.nonEssentialBounds, window.size());
    double[] upperBounds = root.upperBounds;
    double nonCompetitive = largestNonCompetitive();
    int kept = 0;
    for (int i = 0; i < window.size(); i++) {
      candidates[kept] = i;
      kept += larger(upperBounds[i], nonCompetitive);
    }
    candidateCount = kept;
    keep(segment.allowed);
    keep(segment.live);
  }

  /** Makes candidates of the allowed documents that are competitive. */
  private void selectAllowed() {
    candidateCount = window.placesIn(segment.allowed, candidates);
    keep(segment.live);
    dropNonCompetitive();
  }

  /** Drops the candidates that are not among some documents; null stands for all. */
  private void keep(Bits documents) {
    if (documents == null) return;
    int kept = 0;
    for (int i = 0; i < candidateCount; i++) {
      candidates[kept] = candidates[i];
      if (documents.get(window.doc(candidates[i]))) kept++;
    }
    candidateCount = kept;
  }

  private void complete(int essential) throws IOException {
    for (int i = essential; i < partition.size() && candidateCount > 0; i++) {
      TermCursor cursor = partition.term(i);
      if (cursor.windowMaxImpact() == 0) continue;
      addTerm(cursor);
      partition.remove(cursor);
      TermCursor next = i + 1 < partition.size() ? partition.term(i + 1)
          : negatives.isEmpty()                  ? null
                                                 : negatives.get(0);
      if (next != null) dropWhereItPays(next);
    }
  }

  /**
   * Drops candidates where that may let the next term be looked up, not read. How many stay is taken to be as last
   * time.
   *
   * @param next the next term
   */
  private void dropWhereItPays(TermCursor next) {
    int before = candidateCount;
    if (before * keptShare * next.lookUpCost < next.readingCost * window.size()) {
      dropNonCompetitive();
      keptShare = (double) candidateCount / before;
    } else {
      keptShare *= FORGETTING;
    }
  }

  /** Adds a term for the candidates, by reading its postings or by looking the candidates up, whichever is cheaper. */
  private void addTerm(TermCursor cursor) throws IOException {
    if (cursor.postings.isPast(window.end())) return;
    statistics.postingsRead += candidateCount * cursor.lookUpCost > cursor.readingCost * window.size()
        ? cursor.add(window, accumulators)
        : cursor.postings.addOf(candidates, candidateCount, window, cursor.contributions, accumulators);
    accumulators.addWaiting(window);
  }

  private void dropNonCompetitive() {
    root.boundCandidates(accumulators.sums, partition.nonEssentialBounds, candidates, candidateCount);
    double[] upperBounds = root.upperBounds;
    double nonCompetitive = largestNonCompetitive();
    int kept = 0;
    for (int i = 0; i < candidateCount; i++) {
      candidates[kept] = candidates[i];
      kept += larger(upperBounds[i], nonCompetitive);
    }
    candidateCount = kept;
  }

  /**
   * 1 if an upper bound is larger than another, else 0. The bits of numbers from 0 are in their order; a bound below 0,
   * which rounding may leave of a sum that is not exact, counts as larger. A branch here would be taken at random.
   */
  private static int larger(double upperBound, double other) {
    return (int) (Double.doubleToRawLongBits(other) - Double.doubleToRawLongBits(upperBound) >>> 63);
  }

  private void collect() throws IOException {
    statistics.documentsScored += candidateCount;
    root.score(accumulators.sums, accumulators.nothing, candidates, candidateCount);
    float least = collector.minCompetitiveScore();
    for (int i = 0; i < candidateCount; i++) {
      float score = root.reportedScore(i);
      if (root.matches(i) && score >= least) collector.collect(segment.leaf.docBase + window.doc(candidates[i]), score);
    }
    collector.endWindow();
  }
}
