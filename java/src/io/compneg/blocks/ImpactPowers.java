package io.compneg.blocks;

import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Powers of impacts. They are tabulated, because a conjunction takes one for every posting. They come from {@link
 * StrictMath}, whose results do not depend on what the machine has compiled so far.
 */
public final class ImpactPowers {
  private static final int TABULATED = 1 << 16;
  private static final int CACHED_TABLES = 16;
  private static final Map<Double, double[]> TABLES = new LinkedHashMap<>(CACHED_TABLES, 0.75f, true) {
    private static final long serialVersionUID = 1;

    @Override
    protected boolean removeEldestEntry(Map.Entry<Double, double[]> eldest) {
      return size() > CACHED_TABLES;
    }
  };

  private ImpactPowers() {}

  /** A table of the powers of 0 … 65535. */
  static synchronized double[] table(double power) {
    return TABLES.computeIfAbsent(power, ImpactPowers::fill);
  }

  private static double[] fill(double power) {
    double[] table = new double[TABULATED];
    for (int i = 0; i < TABULATED; i++) table[i] = of(i, power);
    return table;
  }

  /** {@code value^power}; monotone in the value. */
  public static double of(double value, double power) {
    if (power == 1) return value;
    if (power == 0.5) return Math.sqrt(value);
    return power == 1.0 / 3 ? StrictMath.cbrt(value) : StrictMath.pow(value, power);
  }

  static double of(int impact, double power, double[] table) {
    return impact < table.length ? table[impact] : of(impact, power);
  }
}
