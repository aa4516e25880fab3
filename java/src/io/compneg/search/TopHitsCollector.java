package io.compneg.search;

import io.compneg.index.ExternalIds;
import java.io.IOException;
import java.util.Arrays;
import org.apache.lucene.util.ArrayUtil;
import org.apache.lucene.util.BytesRef;
import org.apache.lucene.util.IntroSelector;
import org.apache.lucene.util.NumericUtils;

/**
 * Collects the k best documents. A higher score comes first; equal scores are ordered by ascending external id, at the
 * last rank, too.
 *
 * <p>Hits are gathered in no order. At the end of a window the k best are selected, with all that have the k-th score,
 * whose ids are looked up only when they are many, and at the end. A hit is one long, the sortable bits of its score
 * above its document number.
 */
final class TopHitsCollector implements Mergeable<TopHitsCollector, TopHitsCollector.Ranking> {
  /** A place in a ranking: behind this hit. */
  record Mark(float score, BytesRef id) {
    /** The place before all hits. */
    static final Mark NONE = new Mark(Float.NaN, new BytesRef());
  }

  /** More hits with the k-th score than this, and than k, are not kept: their ids decide. */
  private static final int MOST_TIES = 4096;

  /** Selecting takes time for every hit that is kept, so it waits until this share of them is new. */
  private static final int NEW_SHARE = 4;

  private final int k;
  private final ExternalIds externalIds;
  private final Mark after;
  private int[] tied = {}; // of the window: documents with the score of the mark, whose ids decide
  private int tiedCount;
  private long[] hits;
  private int size;
  private int selected; // hits that the last selection kept; they come first
  private final MinCompetitiveScore minCompetitiveScore;

  /**
   * Collects nothing yet.
   *
   * @param after hits before this place and at it are left out
   * @param minCompetitiveScore of all parts of the index that are searched for the query
   */
  TopHitsCollector(int k, ExternalIds externalIds, Mark after, MinCompetitiveScore minCompetitiveScore) {
    this.k = k;
    this.externalIds = externalIds;
    this.after = after;
    this.minCompetitiveScore = minCompetitiveScore;
    this.hits = new long[Math.min(k, 1024)];
  }

  @Override
  public int k() {
    return k;
  }

  @Override
  public float minCompetitiveScore() {
    return minCompetitiveScore.get();
  }

  @Override
  public void collect(int doc, float score) {
    if (score >= after.score) { // never without a mark
      if (score > after.score) return;
      tied = ArrayUtil.grow(tied, tiedCount + 1);
      tied[tiedCount++] = doc;
      return;
    }
    add(doc, score);
  }

  private void add(int doc, float score) {
    hits = ArrayUtil.grow(hits, size + 1);
    hits[size++] = (long) NumericUtils.floatToSortableInt(score) << 32 | doc;
  }

  @Override
  public void endWindow() throws IOException {
    if (tiedCount > 0) addTied();
    if (size < k || size - selected <= selected / NEW_SHARE) return;
    select();
    if (size - k > Math.max(k, MOST_TIES)) breakTies();
    selected = size;
  }

  /** Adds the documents with the score of the mark whose ids come behind its id. */
  private void addTied() throws IOException {
    BytesRef[] ids = externalIds.of(Arrays.copyOf(tied, tiedCount));
    for (int i = 0; i < tiedCount; i++) {
      if (ids[i].compareTo(after.id) > 0) add(tied[i], after.score);
    }
    tiedCount = 0;
  }

  @Override
  public void addAll(TopHitsCollector other) {
    hits = ArrayUtil.grow(hits, size + other.size);
    System.arraycopy(other.hits, 0, hits, size, other.size);
    size += other.size;
  }

  /** Document ids and scores, best first. */
  record Ranking(BytesRef[] ids, float[] scores) {}

  @Override
  public Ranking result() throws IOException {
    if (size > k) {
      select();
      breakTies();
    }
    long[] ascending = Arrays.copyOf(hits, size);
    Arrays.sort(ascending);
    float[] scores = new float[size];
    long[] ranksByDoc = new long[size]; // the document number above the rank
    for (int rank = 0; rank < size; rank++) {
      long hit = ascending[size - 1 - rank];
      scores[rank] = NodeScorer.finite(score(hit));
      ranksByDoc[rank] = (long) doc(hit) << 32 | rank;
    }
    Arrays.sort(ranksByDoc);
    int[] docs = new int[size];
    for (int i = 0; i < size; i++) docs[i] = (int) (ranksByDoc[i] >> 32);
    BytesRef[] idsByDoc = externalIds.of(docs);
    BytesRef[] ids = new BytesRef[size];
    for (int i = 0; i < size; i++) ids[(int) ranksByDoc[i]] = idsByDoc[i];
    for (int from = 0, to; from < size; from = to) {
      for (to = from + 1; to < size && scores[to] == scores[from];) to++;
      if (to - from > 1) Arrays.sort(ids, from, to);
    }
    return new Ranking(ids, scores);
  }

  /** Drops the hits below the k-th score. */
  private void select() {
    LargestFirst.select(hits, 0, size, k - 1);
    long kth = hits[k - 1] >> 32;
    int kept = k;
    for (int i = k; i < size; i++) {
      if (hits[i] >> 32 == kth) hits[kept++] = hits[i];
    }
    size = kept;
    minCompetitiveScore.raise(score(hits[k - 1]));
  }

  /** Keeps k hits after a selection: of those with the k-th score the ones whose ids come first. */
  private void breakTies() throws IOException {
    long kth = hits[k - 1] >> 32;
    int better = 0;
    int[] docs = new int[size];
    int tied = 0;
    for (int i = 0; i < size; i++) {
      if (hits[i] >> 32 != kth) {
        hits[better++] = hits[i];
      } else {
        docs[tied++] = doc(hits[i]);
      }
    }
    docs = Arrays.copyOf(docs, tied);
    Arrays.sort(docs);
    if (better + tied > k) new FirstIds(docs, externalIds.of(docs)).select(0, tied, k - better);
    for (size = better; size < k; size++) hits[size] = kth << 32 | docs[size - better];
  }

  /** Brings the documents whose ids come first to the front. */
  private static final class FirstIds extends IntroSelector {
    private final int[] docs;
    private final BytesRef[] ids;
    private BytesRef pivot;

    FirstIds(int[] docs, BytesRef[] ids) {
      this.docs = docs;
      this.ids = ids;
    }

    @Override
    protected void swap(int i, int j) {
      int doc = docs[i];
      docs[i] = docs[j];
      docs[j] = doc;
      BytesRef id = ids[i];
      ids[i] = ids[j];
      ids[j] = id;
    }

    @Override
    protected void setPivot(int i) {
      pivot = ids[i];
    }

    @Override
    protected int comparePivot(int j) {
      return pivot.compareTo(ids[j]);
    }
  }

  private static int doc(long hit) {
    return (int) hit;
  }

  private static float score(long hit) {
    return NumericUtils.sortableIntToFloat((int) (hit >> 32));
  }
}
