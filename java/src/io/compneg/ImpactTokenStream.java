package io.compneg;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Iterator;
import java.util.Map;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.tokenattributes.CharTermAttribute;
import org.apache.lucene.analysis.tokenattributes.TermFrequencyAttribute;

/**
 * The terms of a vector, each once, its impact as the term frequency: what repeating the term so many times
 * would index.
 */
final class ImpactTokenStream extends TokenStream {
  private final CharTermAttribute term = addAttribute(CharTermAttribute.class);
  private final TermFrequencyAttribute frequency = addAttribute(TermFrequencyAttribute.class);
  private final Iterator<Map.Entry<String, JsonNode>> impacts;

  ImpactTokenStream(JsonNode vector) {
    impacts = vector.properties().iterator();
  }

  @Override
  public boolean incrementToken() {
    if (!impacts.hasNext()) return false;
    clearAttributes();
    Map.Entry<String, JsonNode> impact = impacts.next();
    term.append(impact.getKey());
    frequency.setTermFrequency(impact.getValue().intValue());
    return true;
  }
}
