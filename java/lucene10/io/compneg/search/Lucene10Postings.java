package io.compneg.search;

import io.compneg.blocks.Accumulators;
import io.compneg.blocks.Contribution;
import io.compneg.blocks.ImpactPostings;
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
  protected int addBlock(int base, int to, Contribution[] contributions, Accumulators accumulators) throws IOException {
    postings.nextPostings(to, buffer);
    for (Contribution contribution : contributions) {
      if (contribution.isLinear()) {
        addLinear(contribution.factor, base, accumulators.sums[contribution.accumulator]);
      } else {
        addPowers(contribution, base, accumulators);
      }
    }
    return buffer.size;
  }

  private void addLinear(double factor, int base, double[] sums) throws IOException {
    int[] docs = buffer.docs;
    float[] features = buffer.features;
    for (int i = 0; i < buffer.size; i++) {
      double impact = features[i];
      if (impact >= LEAST_INEXACT) impact = impactIn(docs[i]);
      sums[docs[i] - base] += factor * impact;
    }
  }

  private void addPowers(Contribution contribution, int base, Accumulators accumulators) throws IOException {
    double[] sums = accumulators.sums[contribution.accumulator];
    int[] docs = buffer.docs;
    float[] features = buffer.features;
    double[] table = accumulators.table(contribution, buffer.size);
    for (int i = 0; i < buffer.size; i++) {
      int impact = (int) features[i];
      sums[docs[i] - base] += impact < table.length ? table[impact] : contribution.of(exact(features[i], docs[i]));
    }
  }

  private int exact(float feature, int doc) throws IOException {
    return feature < LEAST_INEXACT ? (int) feature : impactIn(doc);
  }
}
