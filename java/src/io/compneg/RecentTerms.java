package io.compneg;

import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.lucene.index.Term;

/** What the last queries read of terms, of all indexes that are open: the same terms come again and again. */
final class RecentTerms {
  /** What was read of a term in a segment. */
  interface Entry {
    /** What it takes in memory. */
    int bytes();
  }

  private record Key(Object segment, Term term) {}

  /** What an entry takes beside its own bytes and those of its term, about. */
  private static final int ENTRY_BYTES = 256;

  private static final long MOST_BYTES = Runtime.getRuntime().maxMemory() / 16;

  /** The one used longest ago first. */
  private static final Map<Key, Entry> KEPT = new LinkedHashMap<>(16, 0.75f, true);

  private static long bytesKept;

  private RecentTerms() {}

  /** What is kept of a term; null for nothing. */
  static synchronized Entry get(Object segment, Term term) {
    return KEPT.get(new Key(segment, term));
  }

  /** Keeps what was read of a term, in place of what was used longest ago. */
  static synchronized void put(Object segment, Term term, Entry read) {
    Entry last = KEPT.put(new Key(segment, term), read);
    bytesKept += last == null ? bytes(term, read) : read.bytes() - last.bytes();
    for (Iterator<Map.Entry<Key, Entry>> eldest = KEPT.entrySet().iterator(); bytesKept > MOST_BYTES;) {
      Map.Entry<Key, Entry> one = eldest.next();
      bytesKept -= bytes(one.getKey().term, one.getValue());
      eldest.remove();
    }
  }

  private static long bytes(Term term, Entry read) {
    return ENTRY_BYTES + term.bytes().bytes.length + read.bytes();
  }
}
