package io.compneg.index;

import java.nio.charset.StandardCharsets;

/**
 * Reads a document of the common form from the bytes of its line: an object with an id of ASCII characters, a vector,
 * and other texts or whole numbers, without escapes in names, terms and the id. What it reads is what {@link
 * DocumentReader} reads with a JSON parser, in a third of the time. It gives up on every other line, bad ones included.
 */
final class PlainDocument {
  /** Numbers of so many digits and such powers of ten are exact in a double, so their quotient is rounded once. */
  private static final int EXACT_DIGITS = 15;

  private static final double[] POWERS_OF_TEN = new double[EXACT_DIGITS + 1];

  static {
    for (int i = 0; i <= EXACT_DIGITS; i++) POWERS_OF_TEN[i] = Double.parseDouble("1e" + i);
  }

  private static final int LONGEST = 1000;

  private final Vocabulary vocabulary;
  private final ImpactVector vector;
  private final double scale;
  private final boolean negativeWeights;

  private byte[] block;
  private int end;
  private int at; // −1 when the line is not of this form
  private double number;

  PlainDocument(Vocabulary vocabulary, ImpactVector vector, double scale, boolean negativeWeights) {
    this.vocabulary = vocabulary;
    this.vector = vector;
    this.scale = scale;
    this.negativeWeights = negativeWeights;
  }

  /**
   * Reads the line {@code [start, end)} of a block, and fills the vector.
   *
   * @param ids takes the values of the fields {@link DocumentReader#ID_FIELDS}
   * @return false when the line is not of this form, or has no vector
   */
  boolean read(byte[] block, int start, int end, String[] ids) {
    this.block = block;
    this.end = end;
    this.at = start;
    boolean hasVector = false;
    if (!skip('{')) return false;
    do {
      int name = text();
      if (name < 0 || !isWord(name, at - 1)) return false;
      int length = at - 1 - name;
      if (!skip(':')) return false;
      int idField = idField(name, length);
      if (idField >= 0) {
        int id = text();
        if (id < 0 || at - 1 - id > LONGEST || !isWord(id, at - 1)) return false;
        ids[idField] = new String(block, id, at - 1 - id, StandardCharsets.ISO_8859_1);
      } else if (is("vector", name, length)) {
        if (!readVector()) return false;
        hasVector = true;
      } else if (!skipValue()) {
        return false;
      }
    } while (skip(','));
    return hasVector && skip('}') && next() < 0;
  }

  private boolean readVector() {
    vector.clear();
    vocabulary.beginDocument();
    if (!skip('{')) return false;
    if (skip('}')) return true;
    do {
      int start = text();
      if (start < 0) return false;
      Vocabulary.Entry entry = vocabulary.find(block, start, at - 1);
      if (entry == null) {
        if (at - 1 - start > LONGEST || !isWord(start, at - 1)) return false;
        entry = vocabulary.add(block, start, at - 1);
      }
      if (!vocabulary.isNew(entry) || !skip(':') || !readNumber()) return false;
      double impact = Math.rint(number * scale);
      if (number < 0 && !negativeWeights || !(Math.abs(impact) <= DocumentReader.LARGEST_IMPACT)) return false;
      if (scale == 1 && impact != number) return false;
      if (impact > 0) vector.add(entry, (int) impact);
      if (impact < 0) vector.add(entry.complement(), (int) -impact);
    } while (skip(','));
    return skip('}');
  }

  /** The next byte that is no white space, where {@link #at} is then; −1 at the end. */
  private int next() {
    while (at < end && (block[at] == ' ' || block[at] == '\t' || block[at] == '\r')) at++;
    return at < end ? block[at] & 0xff : -1;
  }

  private boolean skip(char sign) {
    if (next() != sign) return false;
    at++;
    return true;
  }

  /** Skips a text without escapes; returns where it starts, after its quote; −1 when there is none. */
  private int text() {
    if (!skip('"')) return -1;
    int start = at;
    while (at < end && block[at] != '"') {
      if (block[at] == '\\' || block[at] >= 0 && block[at] < ' ') return -1;
      at++;
    }
    return at++ < end ? start : -1;
  }

  /** Whether bytes are ASCII characters, one at least, without white space and control characters. */
  private boolean isWord(int from, int to) {
    for (int i = from; i < to; i++) {
      if (block[i] <= ' ' || block[i] == 0x7f) return false;
    }
    return from < to;
  }

  private int idField(int start, int length) {
    for (int i = 0; i < DocumentReader.ID_FIELDS.size(); i++) {
      if (is(DocumentReader.ID_FIELDS.get(i), start, length)) return i;
    }
    return -1;
  }

  private boolean is(String name, int start, int length) {
    if (length != name.length()) return false;
    for (int i = 0; i < length; i++) {
      if (block[start + i] != name.charAt(i)) return false;
    }
    return true;
  }

  /** Skips a text or a number. */
  private boolean skipValue() {
    if (next() != '"') return readNumber();
    for (at++; at < end; at++) {
      byte b = block[at];
      if (b == '"') {
        at++;
        return true;
      }
      if (b == '\\' && !skipEscape() || b < ' ' && b >= 0 || b < 0 && !skipContinuation(b)) return false;
    }
    return false;
  }

  /** Moves to the last byte of an escape sequence. */
  private boolean skipEscape() {
    if (++at == end) return false;
    if (block[at] != 'u') return "\"\\/bfnrt".indexOf(block[at]) >= 0;
    for (int i = 0; i < 4; i++) {
      if (++at == end || Character.digit(block[at], 16) < 0) return false;
    }
    return true;
  }

  /** Moves to the last byte of a character of two bytes or more. */
  private boolean skipContinuation(byte lead) {
    int more = (lead & 0xe0) == 0xc0 ? 1 : (lead & 0xf0) == 0xe0 ? 2 : (lead & 0xf8) == 0xf0 ? 3 : end;
    for (int i = 0; i < more; i++) {
      if (++at >= end || (block[at] & 0xc0) != 0x80) return false;
    }
    return true;
  }

  /** Reads a JSON number. */
  private boolean readNumber() {
    boolean negative = next() == '-';
    int start = at;
    if (negative) at++;
    int first = at;
    long digits = digits(0);
    if (at == first || block[first] == '0' && at > first + 1) return false;
    int count = at - first;
    int fraction = 0;
    if (at < end && block[at] == '.') {
      int point = at++;
      digits = digits(digits);
      fraction = at - point - 1;
      if (fraction == 0) return false;
    }
    boolean exponent = at < end && (block[at] == 'e' || block[at] == 'E');
    if (exponent) {
      at++;
      if (at < end && (block[at] == '+' || block[at] == '-')) at++;
      int power = at;
      digits(0);
      if (at == power) return false;
    }
    if (exponent || count + fraction > EXACT_DIGITS) {
      if (at - start > LONGEST) return false;
      number = Double.parseDouble(new String(block, start, at - start, StandardCharsets.ISO_8859_1));
    } else {
      number = digits / POWERS_OF_TEN[fraction];
      if (negative) number = -number;
    }
    return true;
  }

  /** Appends the digits that follow to a number; what is longer than a long is of no use. */
  private long digits(long before) {
    long digits = before;
    for (; at < end && block[at] >= '0' && block[at] <= '9'; at++) digits = 10 * digits + block[at] - '0';
    return digits;
  }
}
