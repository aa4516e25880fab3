package io.compneg.blocks;

/** What an impact of a term adds to one accumulator: {@code factor · impact^power}, a {@code FixedPoint} number. */
public final class Contribution {
  /** Its place among those of a plan, by which {@link Accumulators} keep its table. */
  final int number;

  public final int accumulator;

  /** Whether it may raise a score. */
  public final boolean positive;

  public final double factor;
  private final double power;
  private final double rounding;
  private final double[] powers; // null for the power 1, which needs no table

  public Contribution(int number, int accumulator, boolean positive, double factor, double power, double rounding) {
    this.number = number;
    this.accumulator = accumulator;
    this.positive = positive;
    this.factor = factor;
    this.power = power;
    this.rounding = rounding;
    this.powers = power == 1 ? null : ImpactPowers.table(power);
  }

  /** Whether an impact adds {@code factor · impact}, neither raised nor rounded. */
  public boolean isLinear() {
    return power == 1;
  }

  public double of(int impact) {
    if (isLinear()) return factor * impact;
    return (factor * ImpactPowers.of(impact, power, powers) + rounding) - rounding;
  }
}
