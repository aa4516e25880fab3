package io.compneg.search;

import java.io.IOException;

/** Searches the blocks that are competitive, in the parts that {@link BlockBounds} makes of them. */
final class BlockSearch implements SegmentSearch {
  private final WindowScorer scorer;
  private final BlockBounds bounds;

  BlockSearch(WindowScorer scorer, BlockBounds bounds) {
    this.scorer = scorer;
    this.bounds = bounds;
  }

  @Override
  public boolean scoreNext() throws IOException {
    if (!bounds.fill(scorer.window, scorer.largestNonCompetitive())) return false;
    if (bounds.hasBegunPart()) scorer.restart(bounds.alternative());
    scorer.score();
    return true;
  }
}
