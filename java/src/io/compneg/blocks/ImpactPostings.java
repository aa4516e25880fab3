package io.compneg.blocks;

import java.io.IOException;
import org.apache.lucene.index.LeafReader;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.DocIdSetIterator;

/**
 * Lucene's postings of a term, read forward only, one after the other.
 *
 * <p>A line of Lucene that reads postings in bulk overrides {@link #addBlock}; see {@code LuceneLine}.
 */
public class ImpactPostings extends TermPostings {
  private static final int BLOCK = 128;

  protected PostingsEnum postings;
  private final LeafReader segment;
  private final Term term;

  // A block of postings.
  private final int[] docs = new int[BLOCK];
  private final int[] impacts = new int[BLOCK];

  /**
   * Wraps the postings of a term.
   *
   * @param postings with frequencies, and before their first document
   */
  public ImpactPostings(PostingsEnum postings, LeafReader segment, Term term) {
    this.postings = postings;
    this.segment = segment;
    this.term = term;
  }

  @Override
  public final boolean isPast(int doc) {
    return postings.docID() >= doc;
  }

  @Override
  public final int add(DocumentWindow window, Contribution[] contributions, Accumulators accumulators)
      throws IOException {
    int count = 0;
    for (int run = 0; run < window.runs; run++) {
      count += add(window.runBases[run], window.runStarts[run], window.runEnds[run], contributions, accumulators);
    }
    return count;
  }

  /**
   * Reads the postings of {@code [from, to)} and adds what they contribute to the sums of each document, which are at
   * its distance from {@code base}.
   *
   * @return how many there are
   */
  private int add(int base, int from, int to, Contribution[] contributions, Accumulators accumulators)
      throws IOException {
    if (postings.docID() < from) postings.advance(from);
    int total = 0;
    while (postings.docID() < to) total += addBlock(base, to, contributions, accumulators);
    return total;
  }

  /** Looks the documents up. */
  @Override
  public final int addOf(int[] places, int length, DocumentWindow window, Contribution[] contributions,
      Accumulators accumulators) throws IOException {
    int total = 0;
    int count = 0;
    int doc = postings.docID();
    for (int i = 0; i < length; i++) {
      int target = window.doc(places[i]);
      if (doc < target) {
        doc = postings.advance(target);
        if (doc == DocIdSetIterator.NO_MORE_DOCS) break;
      }
      if (doc != target) continue;
      docs[count] = places[i];
      impacts[count++] = postings.freq();
      if (count < BLOCK) continue;
      addAll(count, 0, contributions, accumulators);
      total += count;
      count = 0;
    }
    addAll(count, 0, contributions, accumulators);
    return total + count;
  }

  private void addAll(int count, int base, Contribution[] contributions, Accumulators accumulators) {
    for (Contribution contribution : contributions) {
      double[] sums = accumulators.sums[contribution.accumulator];
      double[] table = accumulators.table(contribution, count);
      for (int i = 0; i < count; i++) {
        sums[docs[i] - base] += impacts[i] < table.length ? table[impacts[i]] : contribution.of(impacts[i]);
      }
    }
  }

  /**
   * Reads some postings from the current one on, which is before {@code to}, and adds what they contribute.
   *
   * @return how many
   */
  protected int addBlock(int base, int to, Contribution[] contributions, Accumulators accumulators) throws IOException {
    int count = 0;
    int doc = postings.docID();
    if (contributions.length == 1 && contributions[0].isLinear()) {
      double factor = contributions[0].factor;
      double[] sums = accumulators.sums[contributions[0].accumulator];
      for (; doc < to; doc = postings.nextDoc(), count++) sums[doc - base] += factor * postings.freq();
      return count;
    }
    for (; doc < to && count < BLOCK; doc = postings.nextDoc()) {
      docs[count] = doc;
      impacts[count++] = postings.freq();
    }
    addAll(count, base, contributions, accumulators);
    return count;
  }

  @Override
  public final void rewind() throws IOException {
    if (postings.docID() < 0) return;
    postings = segment.postings(term, PostingsEnum.FREQS);
  }

  /** The impact in one document that has the term, read apart from these postings. */
  protected final int impactIn(int doc) throws IOException {
    PostingsEnum own = segment.postings(term, PostingsEnum.FREQS);
    own.advance(doc);
    return own.freq();
  }
}
