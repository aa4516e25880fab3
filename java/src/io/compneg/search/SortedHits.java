package io.compneg.search;

import java.io.IOException;

/**
 * Collects the first documents by a field, with the place of their values in place of scores: the larger, the earlier.
 * Documents without a value have the place 0. Nothing is pruned, as any score will do.
 */
final class SortedHits implements Mergeable<SortedHits, TopHitsCollector.Ranking> {
  /** More places than a float can tell apart. */
  static final int MOST_PLACES = 1 << 24;

  private final TopHitsCollector hits;
  private final FieldOrder order;
  private final boolean descending;
  private final int[] places; // of the ranks, in the whole index; null where it is this one
  private final int count;

  /**
   * Collects nothing yet.
   *
   * @param places for each rank of the order its rank in an index of which this one is a shard; null for none
   * @param count how many ranks that index has
   */
  SortedHits(TopHitsCollector hits, FieldOrder order, boolean descending, int[] places, int count) {
    this.hits = hits;
    this.order = order;
    this.descending = descending;
    this.places = places;
    this.count = count;
  }

  @Override
  public float minCompetitiveScore() {
    return Float.NEGATIVE_INFINITY;
  }

  @Override
  public void collect(int doc, float score) {
    int rank = order.rank(doc);
    int place = rank < 0 || places == null ? rank : places[rank];
    hits.collect(doc, rank < 0 ? 0 : descending ? place + 1 : count - place);
  }

  @Override
  public void endWindow() throws IOException {
    hits.endWindow();
  }

  @Override
  public void addAll(SortedHits other) {
    hits.addAll(other.hits);
  }

  @Override
  public TopHitsCollector.Ranking result() throws IOException {
    return hits.result();
  }
}
