package io.compneg.index;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.DoublePoint;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.StringField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.FieldInfo;
import org.apache.lucene.index.FieldInfos;
import org.apache.lucene.index.IndexOptions;
import org.apache.lucene.index.IndexReader;
import org.apache.lucene.index.IndexReaderContext;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.MultiBits;
import org.apache.lucene.index.MultiTerms;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.ReaderUtil;
import org.apache.lucene.index.Term;
import org.apache.lucene.index.Terms;
import org.apache.lucene.index.TermsEnum;
import org.apache.lucene.search.BooleanClause;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.ScoreMode;
import org.apache.lucene.search.Scorer;
import org.apache.lucene.search.TermInSetQuery;
import org.apache.lucene.search.Weight;
import org.apache.lucene.util.Bits;
import org.apache.lucene.util.BytesRef;
import org.apache.lucene.util.FixedBitSet;

/**
 * The documents that have, in each of some fields, one of its values. The id of a document is such a field, too. Values
 * are exact terms, and {@code 1990..1999} is a range of numbers and of dates ({@link DateRange}), whose ends belong to
 * it and may be left out; {@code 1990<..<1999} is the range without its ends. {@code 1990.0} is this text and that
 * number.
 *
 * <p>The documents are looked up once an index, and kept as a bit set for each segment. Two filters are equal only if
 * they are one. Safe for use by several threads.
 */
public final class DocumentFilter {
  private static final String NUMBER = "-?\\d+(?:\\.\\d+)?(?:[eE][+-]?\\d+)?";
  private static final Pattern NUMERIC_TEXT =
      Pattern.compile("\\s*(?!-?0\\d|\\d{4}\\s*$)" + NUMBER + "\\s*"); // 007 is a name, 1999 a year
  private static final Pattern ONE_NUMBER = Pattern.compile(NUMBER);
  private static final Pattern RANGE =
      Pattern.compile("(?!\\.\\.$)(?:(" + NUMBER + ")(<?))?\\.\\.(?:(<?)(" + NUMBER + "))?");

  private static final Pattern ONE_END =
      Pattern.compile(NUMBER + "\\s*<?\\.\\..*|.*\\.\\.<?\\s*" + NUMBER, Pattern.DOTALL);

  /** In the data of a shard's commit: the filter fields of the whole index, of which the shard may lack some. */
  static final String DECLARED = "filterFields";

  /** In the data of an update's commit: the filter fields of the index. The last document with one may be deleted. */
  public static final String KNOWN = "knownFilterFields";

  /** After the name of a field: the field with its numbers, as points. */
  private static final String POINTS = "=number";

  private static final int LONGEST_VALUE_BYTES = 32766;

  /** Of more values, none is suggested. */
  private static final int MOST_VALUES = 1000;

  private final Map<String, Set<String>> values = new TreeMap<>();

  /** Of a shard: what is wrong with a value, if it is wrong in every shard; empty if only other shards can tell. */
  private final Map<String, String> faults = new TreeMap<>();

  private IndexReaderContext index;
  private Weight weight;
  private FixedBitSet[] segments;

  /**
   * Reads {@code {field: value or [values]}}.
   *
   * @return null when there is no filter
   * @throws IllegalArgumentException when it is no filter
   */
  public static DocumentFilter of(JsonNode fields) {
    if (fields == null) return null;
    DocumentFilter filter = new DocumentFilter();
    if (fields.isEmpty() || !fields.isObject()) {
      throw new IllegalArgumentException("a filter must be an object with a field or more, got " + fields);
    }
    for (var field : fields.properties()) filter.values.put(field.getKey(), texts(field.getKey(), field.getValue()));
    return filter;
  }

  /** Texts that no range finds, by field: numbers as texts, and dates of another form than ISO 8601. */
  record UnrangedTexts(ConcurrentMap<String, Texts> numbers, ConcurrentMap<String, Texts> dates) {
    /** How many there are, and one of them. */
    record Texts(long count, String example) {
      Texts and(Texts others) {
        return new Texts(count + others.count, example);
      }
    }

    UnrangedTexts() {
      this(new ConcurrentHashMap<>(), new ConcurrentHashMap<>());
    }

    private void add(String field, String text) {
      Texts one = new Texts(1, text);
      if (NUMERIC_TEXT.matcher(text).matches()) numbers.merge(field, one, Texts::and);
      if (DateRange.isUnread(text)) dates.merge(field, one, Texts::and);
    }
  }

  /**
   * Adds the values that a document has in some fields of its source, to be filtered by.
   *
   * @param unranged takes texts that no range will find; several threads may use it
   */
  static void addValues(Document document, List<String> fields, String source, UnrangedTexts unranged)
      throws IOException {
    JsonNode record = Json.MAPPER.readTree(source);
    for (String field : fields) {
      JsonNode value = record.path(field);
      if (value.isMissingNode() || value.isNull()) continue;
      for (String text : texts(field, value)) {
        if (!text.isEmpty()) document.add(new StringField(field, text, Field.Store.NO));
      }
      for (JsonNode each : value.isArray() ? value : List.of(value)) {
        if (each.isTextual()) unranged.add(field, each.textValue());
        if (each.isNumber()) document.add(new DoublePoint(field + POINTS, number(each.asText())));
      }
    }
  }

  /** The name of the points of a field's numbers. */
  public static String points(String field) {
    return field + POINTS;
  }

  /** Whether a value of a field is written as a number, and a document has this number. */
  public static boolean isNumber(IndexReader reader, String field, String text) throws IOException {
    if (!ONE_NUMBER.matcher(text).matches()) return false;
    if (!new BigDecimal(text).stripTrailingZeros().toPlainString().equals(text)) return false;
    IndexSearcher searcher = new IndexSearcher(reader);
    searcher.setQueryCache(null);
    return searcher.search(DoublePoint.newExactQuery(points(field), number(text)), 1).scoreDocs.length > 0;
  }

  private static Set<String> texts(String field, JsonNode value) {
    Set<String> texts = new TreeSet<>();
    for (JsonNode each : value.isArray() ? value : List.of(value)) {
      boolean good = each.isValueNode() && !each.isNull() && (!each.isNumber() || Double.isFinite(each.doubleValue()));
      String text = DocumentReader.stripped(each.asText());
      if (good && each.isFloatingPointNumber()) text = new BigDecimal(text).stripTrailingZeros().toPlainString();
      if (!good || new BytesRef(text).length > LONGEST_VALUE_BYTES) {
        String got = each.toString();
        throw new IllegalArgumentException("the field '" + field + "' must be a text of at most " + LONGEST_VALUE_BYTES
            + " bytes, a number, or a list of these, got " + got.substring(0, Math.min(got.length(), 60)));
      }
      texts.add(text);
    }
    return texts;
  }

  /** The documents of a segment, deleted ones included. */
  public synchronized FixedBitSet in(LeafReaderContext leaf) throws IOException {
    IndexReaderContext top = ReaderUtil.getTopLevelContext(leaf);
    if (top != index) open(top);
    if (segments[leaf.ord] == null) {
      segments[leaf.ord] = new FixedBitSet(leaf.reader().maxDoc());
      Scorer found = weight.scorer(leaf);
      if (found != null) segments[leaf.ord].or(found.iterator());
    }
    return segments[leaf.ord];
  }

  /** Whether a document, given by its number in the index, may be found. */
  public boolean allows(IndexReader reader, int doc) throws IOException {
    LeafReaderContext leaf = reader.leaves().get(ReaderUtil.subIndex(doc, reader.leaves()));
    return in(leaf).get(doc - leaf.docBase);
  }

  private void open(IndexReaderContext top) throws IOException {
    IndexSearcher searcher = new IndexSearcher(top);
    searcher.setQueryCache(null);
    weight = searcher.createWeight(searcher.rewrite(query(top.reader())), ScoreMode.COMPLETE_NO_SCORES, 1);
    segments = new FixedBitSet[top.leaves().size()];
    index = top;
  }

  private Query query(IndexReader reader) throws IOException {
    FieldInfos fields = FieldInfos.getMergedFieldInfos(reader);
    BooleanQuery.Builder all = new BooleanQuery.Builder();
    Set<String> declared = declared(reader, DECLARED);
    Set<String> known = known(reader);
    for (var asked : values.entrySet()) {
      String field = asked.getKey();
      checkField(fields, known, field, reader.maxDoc());
      BooleanQuery.Builder any = new BooleanQuery.Builder();
      List<BytesRef> terms = new ArrayList<>();
      for (String text : asked.getValue()) {
        Matcher range = RANGE.matcher(text);
        boolean ofNumbers = range.matches();
        DateRange dates = DateRange.of(field, text);
        if (!field.equals(ExternalIds.FIELD) && (ofNumbers || dates != null)) {
          checkRange(reader, fields, declared, field, text, ofNumbers, dates != null);
          if (ofNumbers) any.add(range(field, range), BooleanClause.Occur.SHOULD);
          if (dates != null) any.add(dates, BooleanClause.Occur.SHOULD);
        } else {
          checkText(reader, fields, declared, field, text);
          terms.add(new BytesRef(text));
          if (ONE_NUMBER.matcher(text).matches() && fields.fieldInfo(field + POINTS) != null) {
            any.add(DoublePoint.newExactQuery(field + POINTS, number(text)), BooleanClause.Occur.SHOULD);
          }
        }
      }
      any.add(new TermInSetQuery(field, terms), BooleanClause.Occur.SHOULD);
      all.add(any.build(), BooleanClause.Occur.FILTER);
    }
    return all.build();
  }

  /** The filter fields that are fine to ask for, whatever the documents here have. */
  private static Set<String> known(IndexReader reader) {
    Set<String> known = new TreeSet<>(declared(reader, DECLARED));
    known.addAll(declared(reader, KNOWN));
    return known;
  }

  private static Set<String> declared(IndexReader reader, String key) {
    try {
      String names = reader instanceof DirectoryReader index ? index.getIndexCommit().getUserData().get(key) : null;
      return names == null || names.isEmpty() ? Set.of() : Set.of(names.split("\n"));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Refuses names of which one is no filter field here. */
  public static void checkFields(IndexReader reader, List<String> names) {
    FieldInfos fields = FieldInfos.getMergedFieldInfos(reader);
    Set<String> known = known(reader);
    for (String name : names) checkField(fields, known, name, reader.maxDoc());
  }

  private static void checkField(FieldInfos fields, Set<String> declared, String field, int documents) {
    if (declared.contains(field) || isFilterField(fields.fieldInfo(field)) || documents == 0) return;
    Set<String> known = new TreeSet<>(declared);
    for (FieldInfo info : fields) {
      if (isFilterField(info) && !info.name.equals(ExternalIds.FIELD)) known.add(info.name);
    }
    throw new IllegalArgumentException(known.isEmpty()
            ? "it has no filter fields, so none is '" + field + "'; build it with --filter-fields " + field
            : "it has no filter field '" + field + "', only " + String.join(", ", known));
  }

  /** Ids, and the fields that were indexed to filter by, are the only ones without frequencies. */
  private static boolean isFilterField(FieldInfo info) {
    return info != null && info.getIndexOptions() == IndexOptions.DOCS;
  }

  /** A number, with 0 for −0, which points would keep apart. */
  private static double number(String text) {
    return Double.parseDouble(text) + 0.0;
  }

  private void checkRange(IndexReader reader, FieldInfos fields, Set<String> declared, String field, String range,
      boolean ofNumbers, boolean ofDates) throws IOException {
    if (fields.size() == 0) {
      if (declared.contains(field)) refuse(declared, field, range, "");
      return;
    }
    if (ofNumbers && fields.fieldInfo(field + POINTS) != null) return;
    if (ofDates && DateRange.hasDates(reader, field)) return;
    String missing = !ofDates ? "numbers" : !ofNumbers ? "dates" : "numbers and no dates";
    String fault = "the filter field '" + field + "' has no " + missing + ", so there is no range " + range;
    if (!ofDates && DateRange.hasDates(reader, field)) fault += " (dates have years from 0001 to 9999)";
    refuse(declared, field, range, fault);
  }

  /** Refuses a text with dots that no document has, where it must be meant as a range. */
  private void checkText(IndexReader reader, FieldInfos fields, Set<String> declared, String field, String text)
      throws IOException {
    if (!text.contains("..") || field.equals(ExternalIds.FIELD) || reader.docFreq(new Term(field, text)) > 0) return;
    boolean isMeant = ONE_END.matcher(text).matches()
        && (fields.fieldInfo(field + POINTS) != null || DateRange.hasDates(reader, field));
    String fault = "the filter field '" + field + "' has no text " + text
        + ", which is no range either; write a range as 1990..1999, 1990.. or ..1999";
    if (isMeant || declared.contains(field)) refuse(declared, field, text, isMeant ? fault : "");
  }

  private void refuse(Set<String> declared, String field, String value, String fault) {
    if (!declared.contains(field)) throw new IllegalArgumentException(fault);
    faults.put(field + "=" + value, fault);
  }

  private static Query range(String field, Matcher range) {
    double least = range.group(1) == null ? Double.NEGATIVE_INFINITY : number(range.group(1));
    double most = range.group(4) == null ? Double.POSITIVE_INFINITY : number(range.group(4));
    if ("<".equals(range.group(2))) least = Math.nextUp(least);
    if ("<".equals(range.group(3))) most = Math.nextDown(most);
    return DoublePoint.newRangeQuery(field + POINTS, least, most);
  }

  /**
   * Looks the documents up.
   *
   * @return JSON: how many there are, how many ids are unknown, the first of these, and faults that this shard cannot
   *     tell from another one's; if there are none, also the values that fields have, where these are not too many
   */
  public byte[] describe(IndexReader reader) throws IOException {
    long allowed = 0;
    if (reader.leaves().isEmpty()) open(reader.getContext());
    for (LeafReaderContext leaf : reader.leaves()) {
      FixedBitSet found = in(leaf).clone();
      Bits live = leaf.reader().getLiveDocs();
      for (int doc = 0; live != null && doc < found.length(); doc++) {
        if (!live.get(doc)) found.clear(doc);
      }
      allowed += found.cardinality();
    }
    ObjectNode described = Json.MAPPER.createObjectNode().put("allowed", allowed);
    String[] ids = values.getOrDefault(ExternalIds.FIELD, Set.of()).toArray(new String[0]);
    BytesRef[] asked = new BytesRef[ids.length];
    for (int i = 0; i < ids.length; i++) asked[i] = new BytesRef(ids[i]);
    int[] docs = ExternalIds.find(reader, asked);
    int unknown = 0;
    for (int i = ids.length - 1; i >= 0; i--) {
      if (docs[i] >= 0) continue;
      described.put("first", ids[i]);
      unknown++;
    }
    described.set("faults", Json.MAPPER.valueToTree(faults));
    if (allowed == 0) described.set("values", Json.MAPPER.valueToTree(knownValues(reader)));
    return described.put("unknown", unknown).toString().getBytes(StandardCharsets.UTF_8);
  }

  /** The values that live documents have in fields with not too many values. Ids are left out. */
  private Map<String, List<String>> knownValues(IndexReader reader) throws IOException {
    Bits live = MultiBits.getLiveDocs(reader);
    Map<String, List<String>> found = new TreeMap<>();
    for (String field : values.keySet()) {
      Terms terms = field.equals(ExternalIds.FIELD) ? null : MultiTerms.getTerms(reader, field);
      if (terms == null) continue;
      TermsEnum each = terms.iterator();
      List<String> texts = new ArrayList<>();
      int read = 0;
      for (BytesRef text = each.next(); text != null && read <= MOST_VALUES; text = each.next()) {
        read++;
        if (live == null || hasLive(each, live)) texts.add(text.utf8ToString());
      }
      if (read <= MOST_VALUES) found.put(field, texts);
    }
    return found;
  }

  private static boolean hasLive(TermsEnum term, Bits live) throws IOException {
    PostingsEnum docs = term.postings(null, PostingsEnum.NONE);
    int doc = docs.nextDoc();
    while (doc != PostingsEnum.NO_MORE_DOCS && !live.get(doc)) doc = docs.nextDoc();
    return doc != PostingsEnum.NO_MORE_DOCS;
  }

  @Override
  public String toString() {
    return values.toString();
  }
}
