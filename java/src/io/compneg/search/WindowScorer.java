package io.compneg.search;

import io.compneg.blocks.Accumulators;
import io.compneg.blocks.BlockMaxima;
import io.compneg.blocks.DocumentWindow;
import io.compneg.blocks.TermMaxima;
import io.compneg.index.DocumentFilter;
import io.compneg.search.QueryPlan.Alternative;
import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.util.Bits;
import org.apache.lucene.util.FixedBitSet;

/**
 * Exact top-k scoring of a query plan over one segment, window by window.
 *
 * <p>Windows come in ascending order. Where there are {@link BlockMaxima}, they do so in parts, and leave out the
 * blocks that are not competitive; see {@link BlockBounds}. Each window is scored in three steps:
 *
 * <ol>
 *   <li><b>Partition.</b> Terms whose maximum impacts in the window, together, cannot lift a document over the
 *       minimum competitive score are <em>non-essential</em>. A competitive document has one of the other,
 *       <em>essential</em>, terms. The terms of a conjunction are non-essential as soon as all terms of one of its
 *       operands are essential: without that operand the product is 0. A window without an essential term is
 *       skipped. At last, rare non-essential terms become essential after all, because to know them is cheaper than
 *       to bound them.
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
  /** The first window is small, so that what comes after it is pruned by a score from early on. */
  private static final int FIRST_WINDOW = 256;

  /** Looking a document up costs about as much as reading this many postings. */
  static final double LOOK_UP_COST = 6;

  /** How fast it is forgotten that dropping candidates did not pay. */
  private static final double FORGETTING = 0.5;

  /** Where a smaller share of documents is allowed, all terms are looked up for these alone; 1/8 costs more. */
  private static final double SPARSE = 1 / 32.0;

  /** Block maxima pay if so many documents may be found for each hit. With fewer, nearly all blocks are competitive. */
  private static final int DOCUMENTS_PER_HIT = 1024;

  /** The most bytes that the block maxima and the bounds of a query take; several queries are searched at once. */
  private static final long MOST_BLOCK_BYTES = Math.min(1 << 26, Runtime.getRuntime().maxMemory() / 64);

  /** What the bounds of a block take, beside the maxima of the terms. */
  private static final long BOUND_BYTES = 17;

  /** What a term takes, beside its maxima: at least one table of contributions. */
  private static final long TABLE_BYTES = TermMaxima.VALUES * Double.BYTES;

  private final QueryPlan plan;
  private final DocumentFilter filter;
  private final HitCollector collector;
  private final Statistics statistics;

  private final Accumulators accumulators;
  private final Partition partition;
  private final DocumentWindow window;
  private final int[] candidates; // their places in the window
  private int candidateCount;
  private int windowSize;
  private double keptShare; // of the candidates, when some were dropped last

  private LeafReaderContext leaf;
  private Bits live; // documents; null for all
  private FixedBitSet allowed; // null for all
  private boolean sparse;
  private final Map<Integer, FixedBitSet> named = new HashMap<>(); // see QueryPlan#named
  private List<TermCursor> cursors; // of the segment
  private NodeScorer root; // of the query, or of the only alternative that is scored
  private TermCursor[] positives; // of its terms
  private List<TermCursor> negatives;
  private int position; // the documents below it are scored
  private int end; // of the documents
  private BlockBounds blockBounds; // null without block maxima; then there is no position

  /** How much work a search was, for benchmarks. */
  static final class Statistics {
    long postingsRead;
    long documentsScored;

    void add(Statistics other) {
      postingsRead += other.postingsRead;
      documentsScored += other.documentsScored;
    }
  }

  /**
   * Scores for a collector.
   *
   * @param filter the documents that may be found; null for all
   */
  WindowScorer(QueryPlan plan, DocumentFilter filter, HitCollector collector, Statistics statistics) {
    this.plan = plan;
    this.filter = filter;
    this.collector = collector;
    this.statistics = statistics;
    accumulators = plan.room(plan.window);
    partition = new Partition(plan);
    window = new DocumentWindow(plan.window);
    candidates = new int[plan.window];
    windowSize = Math.min(FIRST_WINDOW, plan.window);
  }

  /**
   * Begins the documents {@code [from, to)} of a segment.
   *
   * @param from a multiple of {@link DocumentWindow#BLOCK}
   * @param field the field whose term frequencies are the impacts
   * @param maxima the block maxima of a segment, maybe of another one; null for none
   * @return false when none of the documents can match
   */
  boolean enterSegment(LeafReaderContext leaf, int from, int to, String field, BlockMaxima maxima) throws IOException {
    this.leaf = leaf;
    live = leaf.reader().getLiveDocs();
    allowed = filter == null ? null : filter.in(leaf);
    sparse = allowed != null && allowed.cardinality() < SPARSE * allowed.length();
    for (var part : plan.named.entrySet()) named.put(part.getKey(), part.getValue().in(leaf));
    boolean known = maxima != null && maxima.isOf(leaf);
    boolean bounded = known && payOff(maxima);
    cursors = TermCursor.openAll(plan, field, leaf.reader(), known ? maxima.forThread() : null, bounded);
    choose(null);
    position = from;
    end = to;
    blockBounds = null;
    if (positives.length == 0) return false;
    if (bounded) blockBounds = new BlockBounds(plan, positives, from, to, allowed, accumulators);
    return true;
  }

  /** Chooses what is scored: one alternative, with its terms alone, or with null the whole query. */
  private void choose(Alternative only) {
    int from = only == null ? 0 : only.from();
    int to = only == null ? plan.accumulators() : only.to();
    root = only == null ? plan.root : only.node();
    partition.begin(root, from, to);
    List<TermCursor> chosen = cursors.stream().filter(cursor -> cursor.contributesTo(from, to)).toList();
    positives = chosen.stream().filter(cursor -> cursor.positive).toArray(TermCursor[] ::new);
    negatives = chosen.stream().filter(cursor -> !cursor.positive).toList();
  }

  private boolean payOff(BlockMaxima maxima) {
    int documents = allowed == null ? leaf.reader().maxDoc() : allowed.cardinality();
    long bytes = plan.terms.size() * (maxima.blocks + TABLE_BYTES) + BOUND_BYTES * maxima.blocks;
    return documents / DOCUMENTS_PER_HIT >= collector.k() && bytes <= MOST_BLOCK_BYTES;
  }

  /**
   * Scores the next window of these documents. Windows grow until they are {@link QueryPlan#window}, also from one
   * segment to the next.
   *
   * @return whether there are more
   */
  boolean scoreNextWindow() throws IOException {
    if (blockBounds != null) return scoreNextBlocks();
    int to = Math.min(end, position + windowSize);
    scoreWindow(position, to);
    position = to;
    windowSize = Math.min(2 * windowSize, plan.window);
    return position < end;
  }

  /** Scores the documents {@code [from, to)} of the segment, at most {@link QueryPlan#window}. */
  void scoreWindow(int from, int to) throws IOException {
    window.fill(from, to);
    scoreWindow();
  }

  /** As {@link #scoreNextWindow}, in the order of the block bounds. Each part of it goes through the postings anew. */
  private boolean scoreNextBlocks() throws IOException {
    windowSize = plan.window; // of the next segment: by now there is a score that prunes it
    if (!blockBounds.fill(window, largestNonCompetitive())) return false;
    if (blockBounds.hasBegunPart()) {
      choose(blockBounds.alternative());
      for (TermCursor cursor : positives) cursor.postings.rewind();
      for (TermCursor cursor : negatives) cursor.postings.rewind();
    }
    scoreWindow();
    return true;
  }

  private void scoreWindow() throws IOException {
    if (allowed != null && !window.hasAny(allowed)) return;
    int essential = partition.partition(positives, window, sparse, largestNonCompetitive());
    if (essential < 0 || !accumulate(positives, essential) && !sparse) return;
    if (sparse) {
      selectAllowed();
    } else {
      selectCandidates();
    }
    complete(positives, essential);
    for (int i = 0; i < negatives.size() && candidateCount > 0; i++) addTerm(negatives.get(i));
    collect();
  }

  /**
   * The largest upper bound that is not competitive. A bound that rounds to the k-th score may still win by its id, and
   * whatever rounds to that score is above the float below it. A bound of 0 is that of a document that does not match.
   */
  private double largestNonCompetitive() {
    return Math.max(0, Math.nextDown(collector.minCompetitiveScore()));
  }

  /** Reads the essential terms into the accumulators; false when the window holds none of their postings. */
  private boolean accumulate(TermCursor[] cursors, int essential) throws IOException {
    accumulators.clear(window.size());
    for (var part : named.entrySet()) {
      double[] sums = accumulators.sums[part.getKey()];
      for (int i = 0; i < window.size(); i++) sums[i] = part.getValue().get(window.doc(i)) ? 1 : 0;
    }
    int postings = 0;
    for (int i = 0; i < essential; i++) postings += cursors[i].add(window, accumulators);
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
      if (upperBounds[i] > nonCompetitive) kept++;
    }
    candidateCount = kept;
    keep(allowed);
    keep(live);
  }

  /** Makes candidates of the allowed documents that are competitive. */
  private void selectAllowed() {
    candidateCount = window.placesIn(allowed, candidates);
    keep(live);
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

  private void complete(TermCursor[] cursors, int essential) throws IOException {
    for (int i = essential; i < cursors.length && candidateCount > 0; i++) {
      if (cursors[i].windowMaxImpact == 0) continue;
      addTerm(cursors[i]);
      partition.remove(cursors[i]);
      TermCursor next = i + 1 < cursors.length ? cursors[i + 1] : negatives.isEmpty() ? null : negatives.get(0);
      if (next != null) dropWhereItPays(next.density * window.size());
    }
  }

  /**
   * Drops candidates where that may let the next term be looked up, not read. How many stay is taken to be as last
   * time.
   *
   * @param postings how many the next term has in the window
   */
  private void dropWhereItPays(double postings) {
    int before = candidateCount;
    if (before * keptShare * LOOK_UP_COST < postings) {
      dropNonCompetitive();
      keptShare = (double) candidateCount / before;
    } else {
      keptShare *= FORGETTING;
    }
  }

  /** Adds a term for the candidates, by reading its postings or by looking the candidates up, whichever is cheaper. */
  private void addTerm(TermCursor cursor) throws IOException {
    if (cursor.postings.isPast(window.end())) return;
    statistics.postingsRead += candidateCount * LOOK_UP_COST > cursor.density * window.size()
        ? cursor.add(window, accumulators)
        : cursor.postings.addOf(candidates, candidateCount, window, cursor.contributions, accumulators);
  }

  private void dropNonCompetitive() {
    root.boundCandidates(accumulators.sums, partition.nonEssentialBounds, candidates, candidateCount);
    double[] upperBounds = root.upperBounds;
    double nonCompetitive = largestNonCompetitive();
    int kept = 0;
    for (int i = 0; i < candidateCount; i++) {
      candidates[kept] = candidates[i];
      if (upperBounds[i] > nonCompetitive) kept++;
    }
    candidateCount = kept;
  }

  private void collect() throws IOException {
    statistics.documentsScored += candidateCount;
    root.score(accumulators.sums, accumulators.nothing, candidates, candidateCount);
    float least = collector.minCompetitiveScore();
    for (int i = 0; i < candidateCount; i++) {
      float score = root.reportedScore(i);
      if (root.matches(i) && score >= least) collector.collect(leaf.docBase + window.doc(candidates[i]), score);
    }
    collector.endWindow();
  }
}
