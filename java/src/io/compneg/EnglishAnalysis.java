package io.compneg;

import io.anserini.analysis.DefaultEnglishAnalyzer;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.tokenattributes.CharTermAttribute;

/** Anserini's default English analysis (Porter stems, Lucene's English stop words) for many texts at once. */
public final class EnglishAnalysis {
  private static final Analyzer ANALYZER = DefaultEnglishAnalyzer.newDefaultInstance();

  private EnglishAnalysis() {}

  /**
   * Analyses texts.
   *
   * @param texts UTF-8, separated by NULs
   * @return UTF-8: for each text its terms in order, each followed by a blank, then a NUL
   */
  public static byte[] analyze(byte[] texts) throws IOException {
    ByteArrayOutputStream result = new ByteArrayOutputStream(texts.length);
    for (String text : new String(texts, StandardCharsets.UTF_8).split("\0", -1)) {
      try (TokenStream tokens = ANALYZER.tokenStream("contents", text)) {
        CharTermAttribute term = tokens.getAttribute(CharTermAttribute.class);
        tokens.reset();
        while (tokens.incrementToken()) {
          result.writeBytes(term.toString().getBytes(StandardCharsets.UTF_8));
          result.write(' ');
        }
        tokens.end();
      }
      result.write(0);
    }
    return result.toByteArray();
  }
}
