package io.compneg;

import org.apache.lucene.index.LeafReader;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.Weight;

/** Lucene 10, which reads postings in bulk. */
final class Lucene10 extends LuceneLine {
  @Override
  Weight weight(ComposedQuery query, TermWeights terms, float boost) {
    return new Lucene10Weight(query, terms, boost);
  }

  @Override
  ImpactPostings postings(PostingsEnum postings, LeafReader segment, Term term) {
    return new Lucene10Postings(postings, segment, term);
  }
}
