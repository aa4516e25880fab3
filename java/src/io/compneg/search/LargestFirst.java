package io.compneg.search;

import java.util.Arrays;

/** Brings the largest numbers to the front. Lucene's own selector calls a method for each comparison and exchange. */
final class LargestFirst {
  private LargestFirst() {}

  /**
   * Orders {@code [from, to)} so that the k-th number is where it would be if all were sorted in descending order, and
   * none before it is smaller, and none behind it larger (Hoare, Algorithm 65: Find, 1961).
   *
   * @param k a place in the array
   */
  static void select(long[] numbers, int from, int to, int k) {
    int first = from;
    int last = to - 1;
    for (int rounds = 2 * (Integer.SIZE - Integer.numberOfLeadingZeros(to - from)); first < last; rounds--) {
      if (rounds == 0) {
        sort(numbers, first, last);
        return;
      }
      long pivot = median(numbers[first], numbers[(first + last) >>> 1], numbers[last]);
      int i = first;
      int j = last;
      while (i <= j) {
        while (numbers[i] > pivot) i++;
        while (numbers[j] < pivot) j--;
        if (i > j) break;
        long number = numbers[i];
        numbers[i++] = numbers[j];
        numbers[j--] = number;
      }
      if (k > j && k < i) return;
      if (k <= j) {
        last = j;
      } else {
        first = i;
      }
    }
  }

  private static void sort(long[] numbers, int first, int last) {
    Arrays.sort(numbers, first, last + 1);
    for (int i = first, j = last; i < j; i++, j--) {
      long number = numbers[i];
      numbers[i] = numbers[j];
      numbers[j] = number;
    }
  }

  private static long median(long a, long b, long c) {
    return Math.max(Math.min(a, b), Math.min(Math.max(a, b), c));
  }
}
