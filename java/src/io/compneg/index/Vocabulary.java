package io.compneg.index;

import java.util.Arrays;
import org.apache.lucene.util.BytesRef;

/** The terms that a thread has checked, found by their bytes. Forgets them all when they are too many. */
final class Vocabulary {
  /** A term. */
  static final class Entry {
    final BytesRef term;
    int counted; // before which inversion it was, see ImpactInverter
    int inversion; // the last one that met this term, and its number there
    int number;
    private Entry complement; // null until it is asked for
    private int lastDocument;

    Entry(BytesRef term) {
      this.term = term;
    }

    /** The term that stands for a negative weight of this one. */
    Entry complement() {
      if (complement == null) complement = new Entry(ImpactVector.complement(term));
      return complement;
    }
  }

  private static final int LEAST_SLOTS = 1 << 12;
  private static final int MOST_TERMS = 1 << 18;

  /** The key of a term of up to so many bytes holds them all, and how many they are, so that no other term has it. */
  private static final int SHORT = 7;

  // Open addressing; at most half of the slots are taken. Keys stand beside each other: to follow an entry to its
  // term's bytes takes longer than all else.
  private long[] keys = new long[LEAST_SLOTS]; // 0 for a free slot
  private Entry[] entries = new Entry[LEAST_SLOTS];
  private int size;
  private int document;

  /** Begins a document; terms may be forgotten. */
  void beginDocument() {
    document++;
    if (size <= MOST_TERMS) return;
    keys = new long[LEAST_SLOTS];
    entries = new Entry[LEAST_SLOTS];
    size = 0;
  }

  /** Whether the document has not had this term before; now it has. */
  boolean isNew(Entry entry) {
    boolean isNew = entry.lastDocument != document;
    entry.lastDocument = document;
    return isNew;
  }

  /** Finds the entry of a term, which is not empty; null for a term that is not here. */
  Entry find(byte[] bytes, int start, int end) {
    long key = key(bytes, start, end);
    for (int slot = slot(key); keys[slot] != 0; slot = slot + 1 & keys.length - 1) {
      if (keys[slot] != key) continue;
      Entry entry = entries[slot];
      if (end - start <= SHORT || isOf(entry, bytes, start, end)) return entry;
    }
    return null;
  }

  private static boolean isOf(Entry entry, byte[] bytes, int start, int end) {
    return Arrays.equals(entry.term.bytes, 0, entry.term.length, bytes, start, end);
  }

  /** Adds a term that is not here; its bytes are copied. */
  Entry add(byte[] bytes, int start, int end) {
    if (2 * size == keys.length) {
      long[] before = keys;
      Entry[] moved = entries;
      keys = new long[2 * before.length];
      entries = new Entry[2 * before.length];
      for (int slot = 0; slot < before.length; slot++) {
        if (before[slot] != 0) place(before[slot], moved[slot]);
      }
    }
    Entry entry = new Entry(new BytesRef(Arrays.copyOfRange(bytes, start, end)));
    place(key(bytes, start, end), entry);
    size++;
    return entry;
  }

  private void place(long key, Entry entry) {
    int slot = slot(key);
    while (keys[slot] != 0) slot = slot + 1 & keys.length - 1;
    keys[slot] = key;
    entries[slot] = entry;
  }

  private int slot(long key) {
    return (int) (key * 0x9e3779b97f4a7c15L >>> 40) & keys.length - 1;
  }

  /** In the lowest byte the length of a short term, or 255; above it the bytes of the short term, or a hash. */
  private static long key(byte[] bytes, int start, int end) {
    long key = 0;
    if (end - start <= SHORT) {
      for (int i = start; i < end; i++) key = key << 8 | bytes[i] & 0xff;
      return key << 8 | end - start;
    }
    for (int i = start; i < end; i++) key = 31 * key + bytes[i];
    return key << 8 | 0xff;
  }
}
