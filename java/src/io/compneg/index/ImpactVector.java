package io.compneg.index;

import java.util.Arrays;
import org.apache.lucene.util.BytesRef;

/** The terms of a document, in UTF-8, and their impacts. */
final class ImpactVector {
  /** Before a term: its complement, which holds the magnitude of a negative weight. */
  private static final char COMPLEMENT = '¬';

  private static final BytesRef COMPLEMENT_BYTES = new BytesRef(String.valueOf(COMPLEMENT));

  private Vocabulary.Entry[] terms = new Vocabulary.Entry[256];
  private int[] impacts = new int[256];
  private int size;

  int size() {
    return size;
  }

  BytesRef term(int i) {
    return terms[i].term;
  }

  int impact(int i) {
    return impacts[i];
  }

  /** A copy of the terms. */
  Vocabulary.Entry[] terms() {
    return Arrays.copyOf(terms, size);
  }

  /** A copy of the impacts. */
  int[] impacts() {
    return Arrays.copyOf(impacts, size);
  }

  /** The sum of the impacts. */
  long total() {
    long total = 0;
    for (int i = 0; i < size; i++) total += impacts[i];
    return total;
  }

  void clear() {
    size = 0;
  }

  void add(Vocabulary.Entry term, int impact) {
    if (size == terms.length) {
      terms = Arrays.copyOf(terms, 2 * size);
      impacts = Arrays.copyOf(impacts, 2 * size);
    }
    terms[size] = term;
    impacts[size++] = impact;
  }

  /** The complement of a term. */
  static BytesRef complement(BytesRef term) {
    return joined(COMPLEMENT_BYTES, term);
  }

  /** Whether a term reads as a pair, with text on both sides of the sign, or as a complement. */
  static boolean isPseudoTerm(String term) {
    int sign = term.indexOf(Pairs.SIGN, 1);
    return (sign > 0 && sign < term.length() - 1) || (term.length() > 1 && term.charAt(0) == COMPLEMENT);
  }

  static boolean isComplement(BytesRef term) {
    int sign = COMPLEMENT_BYTES.length;
    return term.length > sign
        && Arrays.equals(term.bytes, term.offset, term.offset + sign, COMPLEMENT_BYTES.bytes, 0, sign);
  }

  static BytesRef joined(BytesRef... parts) {
    int length = 0;
    for (BytesRef part : parts) length += part.length;
    BytesRef whole = new BytesRef(length);
    for (BytesRef part : parts) {
      System.arraycopy(part.bytes, part.offset, whole.bytes, whole.length, part.length);
      whole.length += part.length;
    }
    return whole;
  }
}
