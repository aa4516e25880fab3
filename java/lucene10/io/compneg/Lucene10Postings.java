package io.compneg;

import java.io.IOException;
import org.apache.lucene.index.LeafReader;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.DocAndFloatFeatureBuffer;

/** Reads in bulk: Lucene decodes a block of postings into arrays, with the impacts as floats. */
final class Lucene10Postings extends ImpactPostings {
  /** Below this a float holds every whole number. */
  private static final float LEAST_INEXACT = 1 << 24;

  private final DocAndFloatFeatureBuffer buffer = new DocAndFloatFeatureBuffer();

  Lucene10Postings(PostingsEnum postings, LeafReader segment, Term term) {
    super(postings, segment, term);
  }

  @Override
  int read(int from, int to, int[] offsets, int[] impacts) throws IOException {
    if (enter(from) >= to) return 0;
    int count = 0;
    for (postings.nextPostings(to, buffer); buffer.size > 0; postings.nextPostings(to, buffer)) {
      int[] docs = buffer.docs;
      float[] features = buffer.features;
      for (int i = 0; i < buffer.size; i++, count++) {
        offsets[count] = docs[i] - from;
        impacts[count] = features[i] < LEAST_INEXACT ? (int) features[i] : impactIn(docs[i]);
      }
    }
    return count;
  }

  @Override
  int addTo(int from, int to, double factor, double[] sums) throws IOException {
    if (enter(from) >= to) return 0;
    int count = 0;
    for (postings.nextPostings(to, buffer); buffer.size > 0; postings.nextPostings(to, buffer)) {
      int[] docs = buffer.docs;
      float[] features = buffer.features;
      for (int i = 0; i < buffer.size; i++) {
        double impact = features[i] < LEAST_INEXACT ? features[i] : impactIn(docs[i]);
        sums[docs[i] - from] += factor * impact;
      }
      count += buffer.size;
    }
    return count;
  }
}
