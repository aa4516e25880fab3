package io.compneg.index;

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
import org.apache.lucene.analysis.tokenattributes.OffsetAttribute;

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
    return analyze(language, texts, null);
  }

  /**
   * Analyses texts, and says where the tokens of the terms are.
   *
   * @param texts UTF-8, separated by NULs
   * @return UTF-8: for each text {@code term start end} of its terms in order, each followed by a NUL, then a NUL.
   *     Start and end are in code points of the text
   */
  public static byte[] spans(String language, byte[] texts) throws IOException {
    return analyze(language, texts, new CodePoints());
  }

  private static byte[] analyze(String language, byte[] texts, CodePoints places) throws IOException {
    Analyzer analyzer = ANALYZERS.computeIfAbsent(language, TextAnalysis::analyzer);
    ByteArrayOutputStream result = new ByteArrayOutputStream(texts.length);
    for (String text : new String(texts, StandardCharsets.UTF_8).split("\0", -1)) {
      try (TokenStream tokens = analyzer.tokenStream("contents", text)) {
        CharTermAttribute term = tokens.getAttribute(CharTermAttribute.class);
        OffsetAttribute offsets = tokens.getAttribute(OffsetAttribute.class);
        tokens.reset();
        while (tokens.incrementToken()) {
          result.writeBytes(term.toString().getBytes(StandardCharsets.UTF_8));
          result.write(' ');
          if (places != null) result.writeBytes(places.of(text, offsets).getBytes(StandardCharsets.UTF_8));
        }
        tokens.end();
      }
      result.write(0);
    }
    return result.toByteArray();
  }

  /** Offsets in code points. Counts on from the last offset, so that a text is read once. */
  private static final class CodePoints {
    private String text = "";
    private int offset;
    private int count;

    String of(String current, OffsetAttribute offsets) {
      if (current != text) {
        text = current;
        offset = count = 0;
      }
      return before(offsets.startOffset()) + " " + before(offsets.endOffset()) + "\0";
    }

    private int before(int place) {
      count += place < offset ? -text.codePointCount(place, offset) : text.codePointCount(offset, place);
      offset = place;
      return count;
    }
  }

  private static Analyzer analyzer(String language) {
    if (language.equals("en")) {
      return DefaultEnglishAnalyzer.newDefaultInstance();
    }
    return WITHOUT_ANALYZER.contains(language) ? new WhitespaceAnalyzer()
                                               : AnalyzerMap.getLanguageSpecificAnalyzer(language);
  }
}
