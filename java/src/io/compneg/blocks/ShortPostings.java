package io.compneg.blocks;

/**
 * The postings of a term that has few in a segment, all of them in memory. In a small segment these are nearly all
 * terms, and opening what Lucene has of each takes longer than scoring its documents.
 */
public final class ShortPostings extends TermPostings {
  /** Lucene has no maxima for fewer. */
  public static final int MOST = 512;

  private final int[] docs;
  private final int[] impacts;
  private int next; // the postings before it are used

  public ShortPostings(int[] docs, int[] impacts) {
    this.docs = docs;
    this.impacts = impacts;
  }

  @Override
  public boolean isPast(int doc) {
    return next == docs.length || docs[next] >= doc;
  }

  /** The largest impact in the documents {@code [from, to)}, of which none is used yet. */
  public int largest(int from, int to) {
    skipTo(from);
    int largest = 0;
    for (int i = next; i < docs.length && docs[i] < to; i++) largest = Math.max(largest, impacts[i]);
    return largest;
  }

  @Override
  public void rewind() {
    next = 0;
  }

  @Override
  public int add(DocumentWindow window, Contribution[] contributions, Accumulators accumulators) {
    int count = 0;
    for (int run = 0; run < window.runs; run++) {
      skipTo(window.runStarts[run]);
      int first = next;
      skipTo(window.runEnds[run]);
      for (Contribution contribution : contributions) {
        double[] sums = accumulators.sums[contribution.accumulator];
        for (int i = first; i < next; i++) sums[docs[i] - window.runBases[run]] += contribution.of(impacts[i]);
      }
      count += next - first;
    }
    return count;
  }

  @Override
  public int addOf(
      int[] places, int length, DocumentWindow window, Contribution[] contributions, Accumulators accumulators) {
    int count = 0;
    for (int i = 0; i < length; i++) {
      int doc = window.doc(places[i]);
      skipTo(doc);
      if (next == docs.length) break;
      if (docs[next] != doc) continue;
      accumulators.add(places[i], impacts[next], contributions);
      count++;
    }
    return count;
  }

  private void skipTo(int doc) {
    while (next < docs.length && docs[next] < doc) next++;
  }
}
