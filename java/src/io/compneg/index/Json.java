package io.compneg.index;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;

/** How JSON is read and written. */
public final class Json {
  /**
   * Reads queries and documents, with texts and names of any length. Names are not interned: a vocabulary may
   * be large, and the table of interned texts is one for all threads.
   */
  public static final ObjectMapper MAPPER = newMapper();

  private Json() {}

  private static ObjectMapper newMapper() {
    StreamReadConstraints.Builder limits = StreamReadConstraints.builder();
    limits.maxStringLength(Integer.MAX_VALUE).maxNameLength(Integer.MAX_VALUE).maxNestingDepth(1000);
    JsonFactory factory = JsonFactory.builder()
                              .disable(JsonFactory.Feature.INTERN_FIELD_NAMES)
                              .streamReadConstraints(limits.build())
                              .build();
    return new ObjectMapper(factory).enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS);
  }
}
