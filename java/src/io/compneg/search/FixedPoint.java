package io.compneg.search;

/**
 * Weights and powers as whole multiples of a power of two, so that a sum of them is exact in a double.
 *
 * <p>An exact sum does not depend on its order. Pruning adds the same contributions in another order than an
 * exhaustive scan does, and yet both give the same score to the last bit, ties included. The price is that a
 * weight is held to 24 bits relative to the largest of its vector, as a float would.
 */
final class FixedPoint {
  private static final int WEIGHT_BITS = 24;
  private static final int POWER_BITS = 44;

  private FixedPoint() {}

  /**
   * Rounds to 24 bits relative to {@code largest}, never to zero. Whole numbers up to 2^24 stay as they are.
   */
  static double weight(double weight, double largest) {
    double quantum = Math.scalb(1.0, Math.getExponent(largest) + 1 - WEIGHT_BITS);
    double rounded = Math.rint(weight / quantum) * quantum;
    return rounded != 0 ? rounded : Math.copySign(quantum, weight);
  }

  /** The least power that {@link #roundingConstant} does not round to zero. */
  static double leastPower(double largest) {
    return Math.scalb(1.0, Math.getExponent(largest) + 1 - POWER_BITS);
  }

  /**
   * A constant that rounds a value below {@code largest} to 44 bits relative to it, when it is added and subtracted
   * again. Up to 2^8 such values add up exactly.
   */
  static double roundingConstant(double largest) {
    return Math.scalb(1.5, Math.getExponent(largest) + 1 - POWER_BITS + 52);
  }
}
