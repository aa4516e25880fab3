package io.compneg;

import java.util.Arrays;
import java.util.Comparator;
import java.util.stream.IntStream;
import org.apache.lucene.util.BytesRef;

/**
 * The k best documents: higher score first, equal scores by ascending external id, at the last rank too.
 *
 * <p>A binary heap with the worst hit at its root. Ids are only looked up where scores are equal.
 */
final class TopHits {
  private final int k;
  private final ExternalIds externalIds;
  private float[] scores;
  private int[] docs;
  private BytesRef[] ids; // null until a tie asks for it
  private int size;

  TopHits(int k, ExternalIds externalIds) {
    this.k = k;
    this.externalIds = externalIds;
    int capacity = Math.min(k, 1024);
    scores = new float[capacity];
    docs = new int[capacity];
    ids = new BytesRef[capacity];
  }

  int size() {
    return size;
  }

  /** The score that a further document must reach, by a better id if it is equal; −∞ until k hits are held. */
  float threshold() {
    return size < k ? Float.NEGATIVE_INFINITY : scores[0];
  }

  void offer(float score, int doc) {
    if (size < k) {
      if (size == scores.length) grow();
      set(size, score, doc, null);
      siftUp(size++);
    } else if (score > scores[0]) {
      set(0, score, doc, null);
      siftDown();
    } else if (score == scores[0]) {
      BytesRef id = externalIds.of(doc);
      if (id.compareTo(id(0)) < 0) {
        set(0, score, doc, id);
        siftDown();
      }
    }
  }

  /** A ranking: document ids and scores, best first. */
  record Ranking(BytesRef[] ids, float[] scores) {}

  Ranking ranking() {
    int[] byDoc = IntStream.range(0, size).boxed().sorted(Comparator.comparingInt(i -> docs[i])).mapToInt(i -> i).toArray();
    BytesRef[] found = externalIds.of(Arrays.stream(byDoc).map(i -> docs[i]).toArray());
    for (int i = 0; i < size; i++) ids[byDoc[i]] = found[i];
    Integer[] order = IntStream.range(0, size).boxed().toArray(Integer[]::new);
    Arrays.sort(order, (a, b) -> worse(a, b) ? 1 : worse(b, a) ? -1 : 0);
    BytesRef[] rankedIds = new BytesRef[size];
    float[] rankedScores = new float[size];
    for (int i = 0; i < size; i++) {
      rankedIds[i] = ids[order[i]];
      rankedScores[i] = scores[order[i]];
    }
    return new Ranking(rankedIds, rankedScores);
  }

  private boolean worse(int a, int b) {
    if (scores[a] != scores[b]) return scores[a] < scores[b];
    return a != b && id(a).compareTo(id(b)) > 0;
  }

  private BytesRef id(int slot) {
    if (ids[slot] == null) ids[slot] = externalIds.of(docs[slot]);
    return ids[slot];
  }

  private void siftUp(int slot) {
    while (slot > 0) {
      int parent = (slot - 1) >>> 1;
      if (!worse(slot, parent)) return;
      swap(slot, parent);
      slot = parent;
    }
  }

  private void siftDown() {
    for (int slot = 0; ; ) {
      int child = 2 * slot + 1;
      if (child >= size) return;
      if (child + 1 < size && worse(child + 1, child)) child++;
      if (!worse(child, slot)) return;
      swap(slot, child);
      slot = child;
    }
  }

  private void swap(int a, int b) {
    float score = scores[a];
    int doc = docs[a];
    BytesRef id = ids[a];
    set(a, scores[b], docs[b], ids[b]);
    set(b, score, doc, id);
  }

  private void set(int slot, float score, int doc, BytesRef id) {
    scores[slot] = score;
    docs[slot] = doc;
    ids[slot] = id;
  }

  private void grow() {
    int capacity = (int) Math.min(k, 2L * scores.length);
    scores = Arrays.copyOf(scores, capacity);
    docs = Arrays.copyOf(docs, capacity);
    ids = Arrays.copyOf(ids, capacity);
  }
}
