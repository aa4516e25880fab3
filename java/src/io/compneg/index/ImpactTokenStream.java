package io.compneg.index;

import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.tokenattributes.BytesTermAttribute;
import org.apache.lucene.analysis.tokenattributes.TermFrequencyAttribute;

/**
 * Gives Lucene each term of a vector once, with its impact as the term frequency. The index is the same as if the term
 * were repeated so many times.
 */
final class ImpactTokenStream extends TokenStream {
  private final BytesTermAttribute term = addAttribute(BytesTermAttribute.class);
  private final TermFrequencyAttribute frequency = addAttribute(TermFrequencyAttribute.class);
  private final ImpactVector vector;
  private int next;

  ImpactTokenStream(ImpactVector vector) {
    this.vector = vector;
  }

  @Override
  public boolean incrementToken() {
    if (next == vector.size()) return false;
    clearAttributes();
    term.setBytesRef(vector.term(next));
    frequency.setTermFrequency(vector.impact(next));
    next++;
    return true;
  }
}
