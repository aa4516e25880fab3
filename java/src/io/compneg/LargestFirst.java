package io.compneg;

import org.apache.lucene.util.IntroSelector;

/** Brings the largest numbers to the front. */
final class LargestFirst extends IntroSelector {
  private final long[] numbers;
  private long pivot;

  LargestFirst(long[] numbers) {
    this.numbers = numbers;
  }

  @Override
  protected void swap(int i, int j) {
    long number = numbers[i];
    numbers[i] = numbers[j];
    numbers[j] = number;
  }

  @Override
  protected void setPivot(int i) {
    pivot = numbers[i];
  }

  @Override
  protected int comparePivot(int j) {
    return Long.compare(numbers[j], pivot);
  }
}
