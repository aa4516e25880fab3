package io.compneg;

import io.anserini.analysis.AnalyzerMap;
import io.anserini.analysis.DefaultEnglishAnalyzer;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.core.WhitespaceAnalyzer;
import org.apache.lucene.analysis.tokenattributes.CharTermAttribute;

/** Anserini's analysis of many texts at once, by the language that IndexCollection's option -language names. */
public final class TextAnalysis {
  private static final List<String> WITHOUT_ANALYZER = List.of("ha", "so", "sw", "yo");
  private static final Map<String, Analyzer> ANALYZERS = new ConcurrentHashMap<>();

  private TextAnalysis() {}

  /**
   * Analyses texts.
   *
   * @param texts UTF-8, separated by NULs
   * @return UTF-8: for each text its terms in order, each followed by a blank, then a NUL
   */
  public static byte[] analyze(String language, byte[] texts) throws IOException {
    Analyzer analyzer = ANALYZERS.computeIfAbsent(language, TextAnalysis::analyzer);
    ByteArrayOutputStream result = new ByteArrayOutputStream(texts.length);
    for (String text : new String(texts, StandardCharsets.UTF_8).split("\0", -1)) {
      try (TokenStream tokens = analyzer.tokenStream("contents", text)) {
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

  private static Analyzer analyzer(String language) {
    if (language.equals("en")) {
      return DefaultEnglishAnalyzer.newDefaultInstance();
    }
    return WITHOUT_ANALYZER.contains(language) ? new WhitespaceAnalyzer()
                                               : AnalyzerMap.getLanguageSpecificAnalyzer(language);
  }
}
