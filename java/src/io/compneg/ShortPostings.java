package io.compneg;

import io.compneg.QueryPlan.Contribution;
import java.io.IOException;
import org.apache.lucene.index.PostingsEnum;

/**
 * The postings of a term that has few in a segment, all of them in memory. In a small segment these are nearly all
 * terms, and opening what Lucene has of each takes longer than scoring its documents.
 */
final class ShortPostings extends TermPostings {
  /** Postings that were read. */
  record Read(int[] docs, int[] impacts) implements RecentTerms.Entry {
    /** Lucene has no maxima for fewer. */
    static final int MOST = 512;

    /** Of a term that the segment does not have. */
    static final Read NONE = new Read(new int[0], new int[0]);

    /**
     * Reads all postings of a term.
     *
     * @param postings with frequencies, and before their first document
     * @param count how many there are
     */
    static Read all(PostingsEnum postings, int count) throws IOException {
      int[] docs = new int[count];
      int[] impacts = new int[count];
      for (int i = 0; i < count; i++) {
        docs[i] = postings.nextDoc();
        impacts[i] = postings.freq();
      }
      return new Read(docs, impacts);
    }

    @Override
    public int bytes() {
      return 2 * Integer.BYTES * docs.length;
    }
  }

  private final int[] docs;
  private final int[] impacts;
  private int next; // the postings before it are used

  ShortPostings(Read read) {
    docs = read.docs;
    impacts = read.impacts;
  }

  @Override
  boolean isPast(int doc) {
    return next == docs.length || docs[next] >= doc;
  }

  /** The largest impact in the documents {@code [from, to)}, of which none is used yet. */
  int largest(int from, int to) {
    skipTo(from);
    int largest = 0;
    for (int i = next; i < docs.length && docs[i] < to; i++) largest = Math.max(largest, impacts[i]);
    return largest;
  }

  @Override
  void rewind() {
    next = 0;
  }

  @Override
  int add(DocumentWindow window, Contribution[] contributions, double[][] accumulators) {
    int count = 0;
    for (int run = 0; run < window.runs; run++) {
      skipTo(window.runStarts[run]);
      int first = next;
      skipTo(window.runEnds[run]);
      for (Contribution contribution : contributions) {
        double[] sums = accumulators[contribution.accumulator];
        for (int i = first; i < next; i++) sums[docs[i] - window.runBases[run]] += contribution.of(impacts[i]);
      }
      count += next - first;
    }
    return count;
  }

  @Override
  int addOf(int[] places, int length, DocumentWindow window, Contribution[] contributions, double[][] accumulators) {
    int count = 0;
    for (int i = 0; i < length; i++) {
      int doc = window.doc(places[i]);
      skipTo(doc);
      if (next == docs.length) break;
      if (docs[next] != doc) continue;
      for (Contribution contribution : contributions) {
        accumulators[contribution.accumulator][places[i]] += contribution.of(impacts[next]);
      }
      count++;
    }
    return count;
  }

  private void skipTo(int doc) {
    while (next < docs.length && docs[next] < doc) next++;
  }
}
