package io.compneg.blocks;

import java.io.IOException;
import java.util.Arrays;
import org.apache.lucene.index.MergeTrigger;
import org.apache.lucene.index.SegmentCommitInfo;
import org.apache.lucene.index.SegmentInfos;
import org.apache.lucene.index.TieredMergePolicy;
import org.apache.lucene.store.Directory;

/**
 * Lucene's merges, but for the segment of the {@link BlockMaxima}, whose order would be lost: it is left alone until
 * half of it is deleted. A merge that is asked for takes it, too.
 */
public final class KeepOrderedMergePolicy extends TieredMergePolicy {
  /** Each segment costs a search more than its documents do, and updates are small. */
  private static final int MOST_OF_A_SIZE = 3;

  private static final int SMALL_MB = 16; // Lucene 10's default; all that is smaller counts as of one size

  private final byte[] id; // null for none
  private final byte[] next; // if an update was killed

  public KeepOrderedMergePolicy(Directory directory) throws IOException {
    id = BlockMaxima.segment(directory, BlockMaxima.FILE);
    next = BlockMaxima.segment(directory, BlockMaxima.NEXT);
    setForceMergeDeletesPctAllowed(0);
    if (id == null) return; // a build has large segments, which are not to be merged often
    setSegmentsPerTier(MOST_OF_A_SIZE);
    setFloorSegmentMB(SMALL_MB);
  }

  @Override
  public MergeSpecification findMerges(MergeTrigger trigger, SegmentInfos segments, MergeContext context)
      throws IOException {
    SegmentInfos others = new SegmentInfos(segments.getIndexCreatedVersionMajor());
    for (SegmentCommitInfo one : segments) {
      boolean ordered = Arrays.equals(one.info.getId(), id) || Arrays.equals(one.info.getId(), next);
      boolean spared = ordered && 2 * context.numDeletedDocs(one) < one.info.maxDoc();
      if (!spared) others.add(one);
    }
    return super.findMerges(trigger, others, context);
  }
}
