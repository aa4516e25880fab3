package io.compneg;

import java.io.IOException;
import java.util.Arrays;
import org.apache.lucene.util.BytesRef;
import org.apache.lucene.util.NumericUtils;

/**
 * Collects the k best documents. A higher score comes first; equal scores are ordered by ascending external id, at the
 * last rank, too.
 *
 * <p>They are in a binary heap with the worst hit at its root. A hit is one long, the sortable bits of its score above
 * its document number, so that most comparisons are of two numbers. Ids are compared only where scores are equal.
 */
final class TopHitsCollector implements HitCollector {
  private final int k;
  private final ExternalIds externalIds;
  private long[] heap;
  private int size;
  private float minCompetitiveScore = Float.NEGATIVE_INFINITY;

  TopHitsCollector(int k, ExternalIds externalIds) {
    this.k = k;
    this.externalIds = externalIds;
    this.heap = new long[Math.min(k, 1024)];
  }

  @Override
  public float minCompetitiveScore() {
    return minCompetitiveScore;
  }

  @Override
  public void collect(int doc, float score) {
    long hit = (long) NumericUtils.floatToSortableInt(score) << 32 | doc;
    if (size < k) {
      if (size == heap.length) heap = Arrays.copyOf(heap, (int) Math.min(k, 2L * size));
      siftUp(hit, size++);
    } else if (worse(heap[0], hit)) {
      siftDown(hit);
    } else {
      return;
    }
    if (size == k) minCompetitiveScore = score(heap[0]);
  }

  /** Document ids and scores, best first. */
  record Ranking(BytesRef[] ids, float[] scores) {}

  /** The hits so far. */
  Ranking ranking() throws IOException {
    int[] docs = new int[size];
    for (int i = 0; i < size; i++) docs[i] = doc(heap[i]);
    Arrays.sort(docs);
    BytesRef[] idsByDoc = externalIds.of(docs);
    long[] ascending = Arrays.copyOf(heap, size);
    Arrays.sort(ascending);
    BytesRef[] ids = new BytesRef[size];
    float[] scores = new float[size];
    for (int rank = 0; rank < size; rank++) {
      long hit = ascending[size - 1 - rank];
      scores[rank] = score(hit);
      ids[rank] = idsByDoc[Arrays.binarySearch(docs, doc(hit))];
    }
    for (int from = 0, to; from < size; from = to) {
      for (to = from + 1; to < size && scores[to] == scores[from];) to++;
      if (to - from > 1) Arrays.sort(ids, from, to);
    }
    return new Ranking(ids, scores);
  }

  private boolean worse(long a, long b) {
    if (a >> 32 != b >> 32) return a < b;
    return a != b && externalIds.compare(doc(a), doc(b)) > 0;
  }

  private static int doc(long hit) {
    return (int) hit;
  }

  private static float score(long hit) {
    return NumericUtils.sortableIntToFloat((int) (hit >> 32));
  }

  private void siftUp(long hit, int hole) {
    while (hole > 0) {
      int parent = (hole - 1) >>> 1;
      if (!worse(hit, heap[parent])) break;
      heap[hole] = heap[parent];
      hole = parent;
    }
    heap[hole] = hit;
  }

  private void siftDown(long hit) {
    int hole = 0;
    for (int child = 1; child < size; child = 2 * hole + 1) {
      if (child + 1 < size && worse(heap[child + 1], heap[child])) child++;
      if (!worse(heap[child], hit)) break;
      heap[hole] = heap[child];
      hole = child;
    }
    heap[hole] = hit;
  }
}
