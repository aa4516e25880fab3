package io.compneg;

import java.util.Arrays;
import org.apache.lucene.util.BytesRef;

/** The terms that a thread has checked, found by their bytes. Forgets them all when they are too many. */
final class Vocabulary {
  /** A term. */
  static final class Entry {
    final BytesRef term;
    private int lastDocument;
    private final int hash;

    private Entry(BytesRef term, int hash) {
      this.term = term;
      this.hash = hash;
    }
  }

  private static final int LEAST_SLOTS = 1 << 12;
  private static final int MOST_TERMS = 1 << 18;

  private Entry[] slots = new Entry[LEAST_SLOTS]; // open addressing; at most half of them are taken
  private int size;
  private int document;

  /** Begins a document; terms may be forgotten. */
  void beginDocument() {
    document++;
    if (size <= MOST_TERMS) return;
    slots = new Entry[LEAST_SLOTS];
    size = 0;
  }

  /** Whether the document has not had this term before; now it has. */
  boolean isNew(Entry entry) {
    boolean isNew = entry.lastDocument != document;
    entry.lastDocument = document;
    return isNew;
  }

  /** Finds the entry of a term; null for a term that is not here. */
  Entry find(byte[] bytes, int start, int end) {
    int hash = hash(bytes, start, end);
    for (int slot = hash & slots.length - 1; slots[slot] != null; slot = slot + 1 & slots.length - 1) {
      Entry entry = slots[slot];
      BytesRef term = entry.term;
      if (entry.hash == hash && Arrays.equals(term.bytes, 0, term.length, bytes, start, end)) return entry;
    }
    return null;
  }

  /** Adds a term that is not here; its bytes are copied. */
  Entry add(byte[] bytes, int start, int end) {
    if (2 * size == slots.length) {
      Entry[] before = slots;
      slots = new Entry[2 * before.length];
      for (Entry entry : before) {
        if (entry != null) place(entry);
      }
    }
    Entry entry = new Entry(new BytesRef(Arrays.copyOfRange(bytes, start, end)), hash(bytes, start, end));
    place(entry);
    size++;
    return entry;
  }

  private void place(Entry entry) {
    int slot = entry.hash & slots.length - 1;
    while (slots[slot] != null) slot = slot + 1 & slots.length - 1;
    slots[slot] = entry;
  }

  private static int hash(byte[] bytes, int start, int end) {
    int hash = 1;
    for (int i = start; i < end; i++) hash = 31 * hash + bytes[i];
    hash *= 0x9e3779b9; // spreads terms that differ in their last bytes only
    return hash ^ hash >>> 16;
  }
}
