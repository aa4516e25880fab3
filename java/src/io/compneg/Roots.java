package io.compneg;

/** n-th roots of impacts, tabulated: a conjunction of n operands takes one for every posting. */
final class Roots {
  private static final int TABULATED = 1 << 16;
  private static final int MAX_CACHED_DEGREE = 8;
  private static final double[][] TABLES = new double[MAX_CACHED_DEGREE + 1][];

  private Roots() {}

  /** A table of the n-th roots of 0 … 65535. */
  static synchronized double[] table(int degree) {
    if (degree > MAX_CACHED_DEGREE) return fill(degree);
    if (TABLES[degree] == null) TABLES[degree] = fill(degree);
    return TABLES[degree];
  }

  private static double[] fill(int degree) {
    double[] table = new double[TABULATED];
    for (int i = 0; i < TABULATED; i++) table[i] = root(i, degree);
    return table;
  }

  static double root(double value, int degree) {
    return switch (degree) {
      case 1 -> value;
      case 2 -> Math.sqrt(value);
      case 3 -> Math.cbrt(value);
      default -> Math.pow(value, 1.0 / degree);
    };
  }

  static double of(int impact, int degree, double[] table) {
    return impact < table.length ? table[impact] : root(impact, degree);
  }
}
