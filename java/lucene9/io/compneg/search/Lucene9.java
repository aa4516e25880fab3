package io.compneg.search;

import io.compneg.blocks.ImpactPostings;
import io.compneg.index.DocumentFilter;
import org.apache.lucene.index.Impact;
import org.apache.lucene.index.Impacts;
import org.apache.lucene.index.LeafReader;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.Weight;

/** Lucene 9, which reads postings one by one. */
final class Lucene9 extends LuceneLine {
  @Override
  Weight weight(Query query, String field, ScoringTree tree, DocumentFilter filter, float boost) {
    return new Lucene9Weight(query, field, tree, filter, boost);
  }

  @Override
  ImpactPostings postings(PostingsEnum postings, LeafReader segment, Term term) {
    return new ImpactPostings(postings, segment, term);
  }

  @Override
  int largestFrequency(Impacts maxima, int level) {
    int largest = 0;
    for (Impact pair : maxima.getImpacts(level)) largest = Math.max(largest, pair.freq);
    return largest;
  }
}
