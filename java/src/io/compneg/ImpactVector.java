package io.compneg;

import java.util.Arrays;
import java.util.Comparator;

/** The terms of a document and their impacts. */
final class ImpactVector {
  /** Between the two terms of a pair, a Combined Pseudo-Term. */
  static final char PAIR = '∩';

  /** Before a term: its complement, which holds the magnitude of a negative weight. */
  static final char COMPLEMENT = '¬';

  private String[] terms = new String[256];
  private int[] impacts = new int[256];
  private int size;

  int size() {
    return size;
  }

  String term(int i) {
    return terms[i];
  }

  int impact(int i) {
    return impacts[i];
  }

  void clear() {
    size = 0;
  }

  void add(String term, int impact) {
    if (size == terms.length) {
      terms = Arrays.copyOf(terms, 2 * size);
      impacts = Arrays.copyOf(impacts, 2 * size);
    }
    terms[size] = term;
    impacts[size++] = impact;
  }

  /**
   * Adds the pairs of the {@code top} heaviest terms (complements excepted) with impact √(dᵢ·dⱼ), rounded:
   * D ⊗ D of Krasakis, Yates and Kanoulas, Eq. 7, whose diagonal are the terms themselves. Equal impacts are
   * taken in the order of their terms.
   */
  void addPairs(int top) {
    Integer[] heaviest = new Integer[size];
    int count = 0;
    for (int i = 0; i < size; i++) if (!isComplement(terms[i])) heaviest[count++] = i;
    Arrays.sort(heaviest, 0, count, Comparator.<Integer>comparingInt(i -> -impacts[i]).thenComparing(this::compareTerms));
    count = Math.min(count, top);
    for (int i = 0; i < count; i++) {
      for (int j = i + 1; j < count; j++) {
        boolean ordered = compareTerms(heaviest[i], heaviest[j]) < 0;
        String first = terms[heaviest[ordered ? i : j]];
        String second = terms[heaviest[ordered ? j : i]];
        double product = (double) impacts[heaviest[i]] * impacts[heaviest[j]];
        add(first + PAIR + second, (int) Math.rint(Math.sqrt(product)));
      }
    }
  }

  static boolean isComplement(String term) {
    return term.length() > 1 && term.charAt(0) == COMPLEMENT;
  }

  /** Whether a term reads as a pair: text on both sides of the sign. */
  static boolean isPair(String term) {
    int sign = term.indexOf(PAIR, 1);
    return sign > 0 && sign < term.length() - 1;
  }

  /** By code points, as Python and Lucene order texts. */
  private int compareTerms(int i, int j) {
    return CODE_POINTS.compare(terms[i], terms[j]);
  }

  private static final Comparator<String> CODE_POINTS =
      (a, b) -> {
        int mismatch = 0;
        int common = Math.min(a.length(), b.length());
        while (mismatch < common && a.charAt(mismatch) == b.charAt(mismatch)) mismatch++;
        if (mismatch == common) return a.length() - b.length();
        boolean supplementary = Character.isSurrogate(a.charAt(mismatch));
        boolean other = Character.isSurrogate(b.charAt(mismatch));
        if (supplementary != other) return supplementary ? 1 : -1;
        return a.charAt(mismatch) - b.charAt(mismatch);
      };
}
