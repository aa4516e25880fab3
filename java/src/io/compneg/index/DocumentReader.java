package io.compneg.index;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.lucene.util.BytesRef;

/**
 * Reads and checks the documents of a block of JSON lines, {@code {"id", "vector": {term: weight}}}, and skips their
 * other fields. Weights become impacts, round(weight · scale), half to even.
 *
 * <p>Most lines are read by {@link PlainDocument}, the others by a JSON parser. One parser goes through all lines in a
 * row that it reads. After a bad line a new parser starts on the next line.
 */
public final class DocumentReader {
  /** What is wrong with a document, in one line. */
  public static final class BadDocument extends Exception {
    private static final long serialVersionUID = 1;

    BadDocument(String message) {
      super(message, null, false, false);
    }
  }

  /** Larger impacts would leave the range in which scores are exact to the last bit. */
  static final int LARGEST_IMPACT = 1 << 20;

  /** Lucene's limit for a term, and so for an id, in UTF-8. */
  private static final int LONGEST_TERM_BYTES = 32766;

  private static final int LONGEST_QUOTE = 40;

  static final List<String> ID_FIELDS = List.of("id", "_id", "docid");

  private final byte[] block;
  private final double scale;
  private final boolean negativeWeights;
  private final Pairs pairs;
  private final LineScanner lines;
  private final ImpactVector vector = new ImpactVector();
  private final Vocabulary vocabulary;
  private final PlainDocument plain;
  private final Map<String, Vocabulary.Entry> knownTerms = new HashMap<>();
  private JsonParser parser;
  private int parserStart;
  private String id;

  /**
   * Reads a block.
   *
   * @param vocabulary the terms of the blocks that were read before with the same settings
   */
  DocumentReader(byte[] block, double scale, boolean negativeWeights, Pairs pairs, Vocabulary vocabulary) {
    this.block = block;
    this.vocabulary = vocabulary;
    this.plain = new PlainDocument(vocabulary, vector, scale, negativeWeights);
    this.scale = scale;
    this.negativeWeights = negativeWeights;
    this.pairs = pairs;
    this.lines = new LineScanner(block);
  }

  /** The document's id. */
  public String id() {
    return id;
  }

  /** The document's impacts; overwritten by the next document. */
  ImpactVector vector() {
    return vector;
  }

  /** Moves to the next line; false at the end of the block. */
  public boolean nextLine() {
    return lines.next();
  }

  /** Whether the line holds nothing but white space. */
  public boolean blank() {
    return lines.blankFrom(lines.start());
  }

  /** Finds documents of these ids on the lines: for each that can be read the line's number, a space, and the id. */
  List<String> find(Set<String> ids) {
    List<String> found = new ArrayList<>();
    for (int number = 0; nextLine(); number++) {
      if (blank()) continue;
      try {
        read();
        if (ids.contains(id())) found.add(number + " " + id());
      } catch (BadDocument bad) {
        // it is not in the index either
      }
    }
    return found;
  }

  /** Reads the document on the line. */
  public void read() throws BadDocument {
    String[] ids = new String[ID_FIELDS.size()];
    if (plain.read(block, lines.start(), lines.end(), ids)) {
      parser = null; // it has not seen this line
      finish(ids, true);
      return;
    }
    boolean good = false;
    try {
      if (lines.hasNul()) throw new BadDocument("a NUL character, so this is no UTF-8 text");
      if (lines.hasByteOrderMark()) throw new BadDocument("a byte order mark in the middle of the file");
      if (parser == null) {
        parserStart = lines.start();
        parser = Json.MAPPER.getFactory().createParser(block, parserStart, block.length - parserStart);
      }
      readObject();
      long end = parserStart + parser.currentLocation().getByteOffset();
      if (end > lines.end()) throw new BadDocument("not valid JSON: the object goes on after the end of the line");
      if (!lines.blankFrom((int) end)) throw new BadDocument("not valid JSON: more than one object on the line");
      good = true;
    } catch (JsonProcessingException e) {
      throw new BadDocument("not valid JSON: " + said(e));
    } catch (IOException e) {
      throw new BadDocument("not valid JSON text: " + oneLine(e.getMessage()));
    } finally {
      if (!good) parser = null; // the next line gets another
    }
  }

  private void readObject() throws BadDocument, IOException {
    if (parser.nextToken() != JsonToken.START_OBJECT) {
      throw new BadDocument("expected a JSON object, got " + described(parser));
    }
    String[] ids = new String[ID_FIELDS.size()];
    boolean hasVector = false;
    while (parser.nextToken() != JsonToken.END_OBJECT) {
      String name = parser.currentName();
      parser.nextToken();
      int idField = ID_FIELDS.indexOf(name);
      if (idField >= 0) {
        ids[idField] = readId();
      } else if (name.equals("vector")) {
        readVector();
        hasVector = true;
      } else {
        parser.skipChildren();
      }
    }
    finish(ids, hasVector);
  }

  private void finish(String[] ids, boolean hasVector) throws BadDocument {
    id = null;
    for (int i = ids.length - 1; i >= 0; i--) {
      if (ids[i] != null) id = ids[i];
    }
    if (id == null) {
      throw new BadDocument("no document id; expected one of the fields " + String.join(", ", ID_FIELDS));
    }
    if (!hasVector) throw new BadDocument("no `vector`; to encode texts here, give bm25 as the encoder");
    pairs.addTo(vector);
    checkTotal();
  }

  private String readId() throws BadDocument, IOException {
    JsonToken token = parser.currentToken();
    if (token != JsonToken.VALUE_STRING && token != JsonToken.VALUE_NUMBER_INT) {
      throw new BadDocument("the document id must be a text or a whole number, got " + described(parser));
    }
    String text = parser.getText();
    if (text.isBlank()) throw new BadDocument("the document id is blank");
    if (text.indexOf('\0') >= 0) throw new BadDocument("the document id " + quoted(text) + " has a NUL character");
    if (hasHalfPair(text)) throw new BadDocument("not valid JSON text: half of a surrogate pair");
    if (hasWhiteSpace(text)) {
      throw new BadDocument("the document id " + quoted(text) + " has white space, which a TREC run cannot hold");
    }
    if (new BytesRef(text).length > LONGEST_TERM_BYTES) {
      throw new BadDocument("the document id has more than " + LONGEST_TERM_BYTES + " bytes");
    }
    return text;
  }

  private void readVector() throws BadDocument, IOException {
    vector.clear();
    vocabulary.beginDocument();
    if (parser.currentToken() != JsonToken.START_OBJECT) {
      throw new BadDocument("`vector` must be a JSON object, got " + described(parser));
    }
    while (parser.nextToken() != JsonToken.END_OBJECT) {
      String term = parser.currentName();
      Vocabulary.Entry known = knownTerms.get(term);
      if (known == null) knownTerms.put(term, known = entry(checked(term)));
      if (!vocabulary.isNew(known)) throw new BadDocument("the term " + quoted(term) + " is given twice");
      JsonToken token = parser.nextToken();
      if (token != JsonToken.VALUE_NUMBER_INT && token != JsonToken.VALUE_NUMBER_FLOAT) {
        throw new BadDocument("the weight of " + quoted(term) + " must be a number, got " + described(parser));
      }
      int impact = impact(term, parser.getDoubleValue());
      if (impact > 0) vector.add(known, impact);
      if (impact < 0) vector.add(known.complement(), -impact);
    }
  }

  private Vocabulary.Entry entry(BytesRef term) {
    Vocabulary.Entry known = vocabulary.find(term.bytes, 0, term.length);
    return known == null ? vocabulary.add(term.bytes, 0, term.length) : known;
  }

  private BytesRef checked(String term) throws BadDocument {
    if (term.isEmpty() || hasWhiteSpace(term)) {
      throw new BadDocument("the term " + quoted(term) + " must be a text without white space");
    }
    if (term.indexOf('\0') >= 0) throw new BadDocument("the term " + quoted(term) + " has a NUL character");
    if (hasHalfPair(term)) throw new BadDocument("not valid JSON text: half of a surrogate pair");
    if (ImpactVector.isPseudoTerm(term)) {
      throw new BadDocument(
          "the term " + quoted(term) + " reads as a pseudo-term: ¬t and a∩b are reserved for complements and pairs");
    }
    int longest = pairs.any() ? LONGEST_TERM_BYTES / 2 - 2 : LONGEST_TERM_BYTES - 2;
    BytesRef bytes = new BytesRef(term);
    if (bytes.length > longest) {
      throw new BadDocument("the term " + quoted(term) + " has more than " + longest + " bytes");
    }
    return bytes;
  }

  private int impact(String term, double weight) throws BadDocument {
    if (!negativeWeights && weight < 0) {
      throw new BadDocument("the weight of " + quoted(term) + " is negative, " + number(weight)
          + "; to index negative weights build the index with --signed (signed=True)");
    }
    double impact = Math.rint(weight * scale);
    if (!(Math.abs(impact) <= LARGEST_IMPACT)) {
      String limit = number(LARGEST_IMPACT / scale);
      throw new BadDocument("the weight of " + quoted(term) + " must be at most " + limit + ", got " + number(weight)
          + (scale == 1 ? "" : " (the impact scale is " + number(scale) + ")"));
    }
    if (scale == 1 && weight != impact) {
      throw new BadDocument("the weight of " + quoted(term) + " must be a whole number, got " + number(weight)
          + "; for fractional weights build the index with"
          + " an impact scale, for SPLADE 51.2, which is Pyserini's round(weight / 5 * 256)");
    }
    return (int) impact;
  }

  /** Lucene counts the length of a field in an int. */
  private void checkTotal() throws BadDocument {
    long total = vector.total();
    if (total > Integer.MAX_VALUE) {
      throw new BadDocument("the impacts add up to " + total + ", more than " + Integer.MAX_VALUE);
    }
  }

  private static boolean hasHalfPair(String text) {
    for (int i = 0; i < text.length(); i++) {
      if (!Character.isSurrogate(text.charAt(i))) continue;
      if (i + 1 == text.length() || !Character.isSurrogatePair(text.charAt(i), text.charAt(i + 1))) return true;
      i++;
    }
    return false;
  }

  private static boolean hasWhiteSpace(String text) {
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if ((c <= ' ' || c >= 0x80) && isSpace(c)) return true;
    }
    return false;
  }

  /** The text without white space at its ends. */
  static String stripped(String text) {
    int start = 0;
    int end = text.length();
    while (start < end && isSpace(text.charAt(start))) start++;
    while (start < end && isSpace(text.charAt(end - 1))) end--;
    return text.substring(start, end);
  }

  /** White space as Python's {@code str.isspace} has it. */
  private static boolean isSpace(char c) {
    return c == 0x85 || c <= ' ' && (c >= 0x1c || c >= '\t' && c <= '\r') || Character.isSpaceChar(c);
  }

  private static String number(double value) {
    return value == Math.rint(value) && Math.abs(value) < 1e15 ? Long.toString((long) value) : Double.toString(value);
  }

  private static String quoted(String text) {
    return text.length() <= LONGEST_QUOTE ? "'" + oneLine(text) + "'" : "'" + abbreviated(text) + "'...";
  }

  private static String abbreviated(String text) {
    return oneLine(text.substring(0, Math.min(text.length(), LONGEST_QUOTE)));
  }

  /** Without what would move the cursor of a terminal. */
  private static String oneLine(String text) {
    return text.replaceAll("\\s+", " ").replaceAll("[\\p{Cntrl}\\p{Cf}]", "?");
  }

  /** What is wrong with JSON, without the names of the parser's own settings and tokens. */
  private static String said(JsonProcessingException e) {
    return oneLine(e.getOriginalMessage())
        .replaceFirst("(: enable `| \\(start marker| \\(for ).*", "")
        .replaceFirst("Unexpected end-of-input.*", "it ends within an object, a list or a text")
        .replaceFirst(
            "Illegal unquoted character \\(\\(CTRL-CHAR, code 10\\)\\).*", "a text goes on after the end of the line")
        .replaceFirst("Illegal unquoted character \\(\\(CTRL-CHAR, code (\\d+)\\)\\).*",
            "the control character of code $1 is not written as an escape sequence");
  }

  private static String described(JsonParser parser) throws IOException {
    return switch (parser.currentToken()) {
      case null -> "nothing";
      case START_OBJECT -> "an object";
      case START_ARRAY -> "a list";
      case VALUE_STRING -> "the text " + quoted(parser.getText());
      default -> abbreviated(parser.getText());
    };
  }
}
