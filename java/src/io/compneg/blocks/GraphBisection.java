package io.compneg.blocks;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.RecursiveAction;
import java.util.concurrent.atomic.LongAdder;
import java.util.stream.IntStream;
import org.apache.lucene.index.LeafReader;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.Terms;
import org.apache.lucene.index.TermsEnum;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.util.BytesRef;

/**
 * An order of documents in which those that share terms stand together, by recursive graph bisection (Dhulipala et al.,
 * KDD 2016). Postings then come in runs, and the scores of a block of documents are more alike.
 *
 * <p>A range of documents is divided in the middle. Documents change sides as long as this lowers the cost of the
 * postings, which is for a term with l documents among the n on one side {@code l · log2(n / (l + 1))}, about the bits
 * of the gaps between them. Then both halves are divided in the same way. A pair of documents is exchanged only for a
 * gain above the number of the round, as Mackenzie et al. (2021) have it, so that no two go to and fro.
 *
 * <p>The order depends on the postings alone, not on the number of threads.
 */
public final class GraphBisection {
  private static final int SMALLEST = 32; // documents; ranges up to this size are not divided
  private static final int TERM_BYTES = 16; // in a workspace
  private static final int ROUNDS = 10;
  private static final int SHARED = 1 << 13; // documents; at the top there are fewer ranges than threads
  private static final float[] LOG2 = new float[1 << 16];
  private static final int LONGEST = Integer.MAX_VALUE - 8;

  static {
    for (int i = 1; i < LOG2.length; i++) LOG2[i] = (float) (Math.log(i) / Math.log(2));
  }

  /** What divides a range: for each term its documents on both sides, and what one of them gains by a change. */
  private final class Workspace {
    final int[] left = new int[terms];
    final int[] right = new int[terms];
    final float[] gainLeft = new float[terms];
    final float[] gainRight = new float[terms];
    int[] seen = new int[1024];
    int size;

    void count(int from, int to, int[] degrees) {
      for (int i = from; i < to; i++) {
        for (int p = starts[documents[i]]; p < starts[documents[i] + 1]; p++) {
          int term = postings[p];
          if (left[term] == 0 && right[term] == 0) {
            if (size == seen.length) seen = Arrays.copyOf(seen, 2 * size);
            seen[size++] = term;
          }
          degrees[term]++;
        }
      }
    }

    void computeGains(float logLeft, float logRight) {
      for (int i = 0; i < size; i++) {
        int term = seen[i];
        int l = left[term];
        int r = right[term];
        float cost = l * (logLeft - log2(l + 1)) + r * (logRight - log2(r + 1));
        gainLeft[term] = l == 0 ? 0 : cost - (l - 1) * (logLeft - log2(l)) - (r + 1) * (logRight - log2(r + 2));
        gainRight[term] = r == 0 ? 0 : cost - (l + 1) * (logLeft - log2(l + 2)) - (r - 1) * (logRight - log2(r));
      }
    }

    /** Sorts the documents of one side by their gains, the largest first; equal ones by number. */
    void sort(int from, int to, float[] termGains) {
      if (to - from < SHARED) {
        for (int i = from; i < to; i++) gains[i] = gain(documents[i], termGains);
        Arrays.sort(gains, from, to);
      } else { // the other threads of the pool help
        IntStream.range(from, to).parallel().forEach(i -> gains[i] = gain(documents[i], termGains));
        Arrays.parallelSort(gains, from, to);
      }
      for (int i = from; i < to; i++) documents[i] = (int) gains[i];
    }

    /** What a document gains by a change, the other way round, above its number. */
    private long gain(int document, float[] termGains) {
      float gain = 0;
      for (int p = starts[document]; p < starts[document + 1]; p++) gain += termGains[postings[p]];
      return (long) sortable(-gain) << 32 | document;
    }

    void move(int document, int[] source, int[] target) {
      for (int p = starts[document]; p < starts[document + 1]; p++) {
        source[postings[p]]--;
        target[postings[p]]++;
      }
    }

    void clear() {
      for (int i = 0; i < size; i++) left[seen[i]] = right[seen[i]] = 0;
      size = 0;
    }
  }

  private final class Range extends RecursiveAction {
    private static final long serialVersionUID = 1;

    private final int from;
    private final int to;

    Range(int from, int to) {
      this.from = from;
      this.to = to;
    }

    @Override
    protected void compute() {
      if (stopped) return;
      if (to - from <= SMALLEST) {
        Arrays.sort(documents, from, to);
        return;
      }
      int middle = (from + to) >>> 1;
      divide(from, middle, to);
      invokeAll(new Range(from, middle), new Range(middle, to));
    }
  }

  private final int terms;
  private final int[] starts; // of each document's terms in the postings
  private final int[] postings;
  private final int[] documents;
  private final long[] gains;
  private final Queue<Workspace> workspaces = new ConcurrentLinkedQueue<>();
  private final LongAdder divided;
  private volatile boolean stopped;

  private GraphBisection(int terms, int[] starts, int[] postings, LongAdder divided) {
    this.divided = divided;
    this.terms = terms;
    this.starts = starts;
    this.postings = postings;
    documents = new int[starts.length - 1];
    for (int i = 0; i < documents.length; i++) documents[i] = i;
    gains = new long[documents.length];
  }

  /** How many documents there are in all ranges that are divided. */
  static long work(int documents) {
    long work = 0;
    for (int size = documents; size > SMALLEST; size = (size + 1) / 2) work += documents;
    return work;
  }

  /**
   * The documents of a segment in their new order.
   *
   * @param threads how many work at most; each needs 16 bytes for each term, and they take half of {@code bytes}
   * @param bytes the memory for the terms of all documents; the most frequent terms are left out where it is too small
   * @param divided counts the documents of the ranges that are divided, in shares after each round, up to {@link #work}
   */
  public static int[] order(LeafReader segment, String field, int threads, long bytes, LongAdder divided)
      throws IOException, InterruptedException {
    Terms terms = segment.terms(field);
    List<BytesRef> chosen = terms == null ? List.of() : chosen(terms, Math.min(bytes / Integer.BYTES, LONGEST));
    int[] starts = new int[segment.maxDoc() + 1];
    TermsEnum cursor = terms == null ? null : terms.iterator();
    PostingsEnum each = null;
    for (BytesRef term : chosen) {
      if (!cursor.seekExact(term)) throw new AssertionError(term);
      each = cursor.postings(each, PostingsEnum.NONE);
      while (each.nextDoc() != DocIdSetIterator.NO_MORE_DOCS) starts[each.docID() + 1]++;
      if (Thread.interrupted()) throw new InterruptedException();
    }
    for (int i = 1; i < starts.length; i++) starts[i] += starts[i - 1];
    int[] postings = new int[starts[starts.length - 1]];
    int[] ends = Arrays.copyOf(starts, starts.length);
    for (int number = 0; number < chosen.size(); number++) {
      if (!cursor.seekExact(chosen.get(number))) throw new AssertionError(chosen.get(number));
      each = cursor.postings(each, PostingsEnum.NONE);
      while (each.nextDoc() != DocIdSetIterator.NO_MORE_DOCS) postings[ends[each.docID()]++] = number;
      if (Thread.interrupted()) throw new InterruptedException();
    }
    long affordable = bytes / 2 / ((long) TERM_BYTES * Math.max(1, chosen.size()));
    return new GraphBisection(chosen.size(), starts, postings, divided)
        .run((int) Math.max(1, Math.min(affordable, threads)));
  }

  /** The terms of several documents, in the order of the segment; of too many postings the most frequent terms go. */
  private static List<BytesRef> chosen(Terms terms, long most) throws IOException {
    record Counted(BytesRef term, int number, int documents) {}
    List<Counted> all = new ArrayList<>();
    TermsEnum cursor = terms.iterator();
    long postings = 0;
    for (BytesRef term = cursor.next(); term != null; term = cursor.next()) {
      if (cursor.docFreq() < 2) continue;
      all.add(new Counted(BytesRef.deepCopyOf(term), all.size(), cursor.docFreq()));
      postings += cursor.docFreq();
    }
    all.sort(Comparator.comparingInt(Counted::documents).reversed().thenComparingInt(Counted::number));
    int first = 0;
    while (postings > most) postings -= all.get(first++).documents;
    List<Counted> kept = all.subList(first, all.size());
    kept.sort(Comparator.comparingInt(Counted::number));
    return kept.stream().map(Counted::term).toList();
  }

  private int[] run(int threads) throws InterruptedException {
    ForkJoinPool pool = new ForkJoinPool(threads);
    try {
      pool.submit(new Range(0, documents.length)).get();
    } catch (ExecutionException e) {
      for (Throwable cause = e; cause != null; cause = cause.getCause()) {
        if (cause instanceof OutOfMemoryError full) throw full; // a pool of this kind wraps it
      }
      throw new IllegalStateException(e.getCause());
    } finally {
      stopped = true;
      pool.close(); // waits for what runs
    }
    return documents;
  }

  private void divide(int from, int middle, int to) {
    Workspace space = workspaces.poll();
    if (space == null) space = new Workspace();
    space.count(from, middle, space.left);
    space.count(middle, to, space.right);
    int counted = 0;
    for (int round = 0; round < ROUNDS && !stopped; round++) {
      space.computeGains(log2(middle - from), log2(to - middle));
      space.sort(from, middle, space.gainLeft);
      space.sort(middle, to, space.gainRight);
      int exchanged = 0;
      while (exchanged < middle - from && gain(from + exchanged) + gain(middle + exchanged) > round) {
        int l = documents[from + exchanged];
        int r = documents[middle + exchanged];
        space.move(l, space.left, space.right);
        space.move(r, space.right, space.left);
        documents[from + exchanged] = r;
        documents[middle + exchanged] = l;
        exchanged++;
      }
      if (exchanged == 0) break;
      divided.add((to - from) / ROUNDS);
      counted += (to - from) / ROUNDS;
    }
    space.clear();
    workspaces.add(space);
    divided.add(to - from - counted);
  }

  private float gain(int place) {
    return -unsortable((int) (gains[place] >> 32));
  }

  /** A whole number that is ordered as the number is. */
  private static int sortable(float value) {
    int bits = Float.floatToIntBits(value);
    return bits ^ bits >> 31 & 0x7fffffff;
  }

  private static float unsortable(int bits) {
    return Float.intBitsToFloat(bits ^ bits >> 31 & 0x7fffffff);
  }

  private static float log2(int number) {
    return number < LOG2.length ? LOG2[number] : (float) (Math.log(number) / Math.log(2));
  }
}
