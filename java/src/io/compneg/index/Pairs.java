package io.compneg.index;

import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.lucene.util.BytesRef;

/**
 * Which pairs of its terms a document gets, with the impact √(dᵢ·dⱼ) times a scale, rounded: the pairs of its heaviest
 * terms, or chosen ones. This is D ⊗ D of Krasakis, Yates and Kanoulas, Eq. 7; its diagonal are the terms themselves.
 */
final class Pairs {
  /** Between the two terms of a pair, a Combined Pseudo-Term. */
  static final char SIGN = '∩';

  private static final BytesRef SIGN_BYTES = new BytesRef(String.valueOf(SIGN));

  private final int heaviest;
  private final int scale;

  /** For a term, its partners, each with the pair. Both terms of a pair have the other. */
  private final Map<BytesRef, Map<BytesRef, BytesRef>> chosen = new HashMap<>();

  /**
   * Chooses pairs.
   *
   * @param heaviest of how many terms of a document all pairs are indexed
   * @param chosen the pairs that are indexed where a document has both terms
   * @param scale of the impacts of pairs, a power of two
   */
  Pairs(int heaviest, List<String> chosen, int scale) {
    this.heaviest = heaviest;
    this.scale = scale;
    for (String pair : chosen) {
      for (int sign = pair.indexOf(SIGN, 1); sign > 0 && sign < pair.length() - 1;
          sign = pair.indexOf(SIGN, sign + 1)) {
        choose(new BytesRef(pair.substring(0, sign)), new BytesRef(pair.substring(sign + 1)));
      }
    }
  }

  /** A term may begin or end with the sign, so that a pair may be read in two ways. */
  private void choose(BytesRef a, BytesRef b) {
    BytesRef pair = joined(a, b);
    chosen.computeIfAbsent(a, term -> new HashMap<>()).put(b, pair);
    chosen.computeIfAbsent(b, term -> new HashMap<>()).put(a, pair);
  }

  /** Whether a document may get pairs. */
  boolean any() {
    return heaviest > 0 || !chosen.isEmpty();
  }

  /** Adds its pairs to a document. Complements have none. */
  void addTo(ImpactVector vector) {
    if (heaviest > 0) addHeaviest(vector);
    if (!chosen.isEmpty()) addChosen(vector);
  }

  /** Terms of equal impact are taken in the order of their code points. */
  private void addHeaviest(ImpactVector vector) {
    Integer[] terms = new Integer[vector.size()];
    int count = 0;
    for (int i = 0; i < vector.size(); i++) {
      if (!ImpactVector.isComplement(vector.term(i))) terms[count++] = i;
    }
    Comparator<Integer> byImpact = Comparator.comparingInt(vector::impact);
    Arrays.sort(terms, 0, count, byImpact.reversed().thenComparing(vector::term));
    count = Math.min(count, heaviest);
    for (int i = 0; i < count; i++) {
      for (int j = i + 1; j < count; j++) {
        add(vector, joined(vector.term(terms[i]), vector.term(terms[j])), terms[i], terms[j]);
      }
    }
  }

  private void addChosen(ImpactVector vector) {
    Map<BytesRef, Integer> present = new HashMap<>();
    int size = vector.size();
    for (int i = 0; i < size; i++) {
      Map<BytesRef, BytesRef> partners = chosen.get(vector.term(i));
      if (partners == null) continue;
      int place = i;
      if (partners.size() < present.size()) {
        partners.forEach((partner, pair) -> add(vector, pair, place, present.get(partner)));
      } else {
        present.forEach((partner, other) -> add(vector, partners.get(partner), place, other));
      }
      present.put(vector.term(i), i);
    }
  }

  /** Adds a pair, unless it is not chosen or the document lacks a term. */
  private void add(ImpactVector vector, BytesRef pair, int i, Integer j) {
    if (pair == null || j == null) return;
    vector.add(new Vocabulary.Entry(pair), impact(vector.impact(i), vector.impact(j), scale));
  }

  /** The impact of the pair of two terms with these impacts. */
  static int impact(int a, int b, int scale) {
    return (int) Math.rint(scale * Math.sqrt((double) a * b));
  }

  private static BytesRef joined(BytesRef a, BytesRef b) {
    return a.compareTo(b) < 0 ? ImpactVector.joined(a, SIGN_BYTES, b) : ImpactVector.joined(b, SIGN_BYTES, a);
  }
}
