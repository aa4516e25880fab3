package io.compneg.search;

import io.compneg.blocks.ImpactPostings;
import io.compneg.index.DocumentFilter;
import org.apache.lucene.index.FreqAndNormBuffer;
import org.apache.lucene.index.Impacts;
import org.apache.lucene.index.LeafReader;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.Weight;

/** Lucene 10, which reads postings in bulk. */
final class Lucene10 extends LuceneLine {
  @Override
  Weight weight(Query query, String field, ScoringTree tree, DocumentFilter filter, float boost) {
    return new Lucene10Weight(query, field, tree, filter, boost);
  }

  @Override
  ImpactPostings postings(PostingsEnum postings, LeafReader segment, Term term) {
    return new Lucene10Postings(postings, segment, term);
  }

  @Override
  int largestFrequency(Impacts maxima, int level) {
    FreqAndNormBuffer pairs = maxima.getImpacts(level);
    int largest = 0;
    for (int i = 0; i < pairs.size; i++) largest = Math.max(largest, pairs.freqs[i]);
    return largest;
  }
}
