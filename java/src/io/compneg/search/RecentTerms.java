package io.compneg.search;

import io.compneg.blocks.TermMaxima;
import java.io.IOException;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.lucene.index.IndexReader;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.Term;
import org.apache.lucene.index.TermState;

/** What the last queries read of terms, of all indexes that are open: the same terms come again and again. */
final class RecentTerms {
  /**
   * A term in a segment.
   *
   * @param documents how many have the term; with 0 there is nothing else
   * @param place where Lucene has the postings; null where all are here
   * @param docs the documents of the postings; null where these are not here
   * @param impacts in these documents
   * @param dense the impact in each document of the segment; null where they are not here
   * @param maxima those of blocks of documents; null if no search needed them
   */
  record Entry(int documents, TermState place, int[] docs, int[] impacts, byte[] dense, TermMaxima maxima) {
    /** A term that the segment does not have. */
    static final Entry NONE = new Entry(0, null, null, null, null, null);

    /**
     * A term whose postings are read.
     *
     * @param postings with frequencies, and before their first document
     * @param count how many there are
     */
    static Entry of(PostingsEnum postings, int count, TermMaxima maxima) throws IOException {
      int[] docs = new int[count];
      int[] impacts = new int[count];
      for (int i = 0; i < count; i++) {
        docs[i] = postings.nextDoc();
        impacts[i] = postings.freq();
      }
      return new Entry(count, null, docs, impacts, null, maxima);
    }

    private long bytes(Term term) {
      long own = docs == null ? 0 : 2L * Integer.BYTES * docs.length;
      if (dense != null) own = dense.length;
      return ENTRY_BYTES + term.bytes().bytes.length + own + (maxima == null ? 0 : maxima.bytes());
    }
  }

  private record Key(Object segment, Term term) {}

  /** What an entry takes beside its postings, its maxima and its term, about. */
  private static final int ENTRY_BYTES = 320;

  static final long MOST_BYTES = Runtime.getRuntime().maxMemory() / 16;

  /** The one used longest ago first. */
  private static final Map<Key, Entry> KEPT = new LinkedHashMap<>(16, 0.75f, true);

  /** The entries of each open segment. The lock guards the sets, too. */
  private static final Map<Object, Set<Key>> SEGMENTS = new ConcurrentHashMap<>();

  private static long bytesKept;

  private RecentTerms() {}

  /** What is kept of a term; null for nothing. */
  static synchronized Entry get(IndexReader.CacheHelper segment, Term term) {
    return KEPT.get(new Key(segment.getKey(), term));
  }

  /** Keeps what was read of a term, in place of what was used longest ago, until the segment is closed. */
  static void put(IndexReader.CacheHelper segment, Term term, Entry read) {
    boolean first = SEGMENTS.putIfAbsent(segment.getKey(), new HashSet<>()) == null;
    if (first) segment.addClosedListener(RecentTerms::drop); // with no lock: it may have one
    keep(new Key(segment.getKey(), term), read);
  }

  /** The size of all entries, about. */
  static synchronized long bytes() {
    return bytesKept;
  }

  private static synchronized void keep(Key key, Entry read) {
    Set<Key> ofSegment = SEGMENTS.get(key.segment);
    if (ofSegment == null) return; // it was closed meanwhile
    remove(key);
    KEPT.put(key, read);
    ofSegment.add(key);
    bytesKept += read.bytes(key.term);
    while (bytesKept > MOST_BYTES) remove(KEPT.keySet().iterator().next());
  }

  private static synchronized void remove(Key key) {
    Entry last = KEPT.remove(key);
    if (last == null) return;
    bytesKept -= last.bytes(key.term);
    Set<Key> ofSegment = SEGMENTS.get(key.segment);
    if (ofSegment != null) ofSegment.remove(key);
  }

  /** Removes each entry in a lock of its own, so that searches of other indexes need not wait for all of them. */
  private static void drop(Object segment) {
    for (Key key : detached(segment)) remove(key);
  }

  /** Ends keeping entries of a segment. Returns those that are kept, in a set that does not change any more. */
  private static synchronized Set<Key> detached(Object segment) {
    return SEGMENTS.remove(segment);
  }
}
