package io.compneg;

import java.util.Arrays;

/** Brings the largest numbers to the front (Hoare, Algorithm 65: Find, 1961). */
final class LargestFirst {
  /** Fewer numbers are sorted. */
  private static final int SORTED = 32;

  private LargestFirst() {}

  /**
   * Orders the first {@code size} numbers so that none of the first {@code count} is smaller than another one, and the
   * smallest of them is their last.
   *
   * @param count at least 1, at most {@code size}
   */
  static void select(long[] numbers, int size, int count) {
    int place = count - 1;
    int left = 0;
    int right = size - 1;
    int rounds = 4 * (32 - Integer.numberOfLeadingZeros(size)); // many more than it takes; then the rest is sorted
    while (right - left >= SORTED && rounds-- > 0) {
      long pivot = median(numbers[left], numbers[(left + right) >>> 1], numbers[right]);
      int i = left;
      int j = right;
      while (i <= j) {
        while (numbers[i] > pivot) i++;
        while (numbers[j] < pivot) j--;
        if (i <= j) swap(numbers, i++, j--);
      }
      if (place > j && place < i) return;
      if (place <= j) {
        right = j;
      } else {
        left = i;
      }
    }
    Arrays.sort(numbers, left, right + 1);
    while (left < right) swap(numbers, left++, right--);
  }

  private static long median(long a, long b, long c) {
    return Math.max(Math.min(a, b), Math.min(Math.max(a, b), c));
  }

  private static void swap(long[] numbers, int i, int j) {
    long number = numbers[i];
    numbers[i] = numbers[j];
    numbers[j] = number;
  }
}
