package io.compneg.search;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.compneg.blocks.BlockMaxima;
import io.compneg.index.Commits;
import io.compneg.index.DocumentFilter;
import io.compneg.index.ExternalIds;
import io.compneg.index.Json;
import io.compneg.index.LiveCounts;
import io.compneg.index.Parallel;
import io.compneg.index.SourceHash;
import java.io.Closeable;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.FieldInfo;
import org.apache.lucene.index.FieldInfos;
import org.apache.lucene.index.IndexOptions;
import org.apache.lucene.index.LeafReader;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.MultiTerms;
import org.apache.lucene.index.NumericDocValues;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.StandardDirectoryReader;
import org.apache.lucene.index.Terms;
import org.apache.lucene.index.TermsEnum;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.util.BytesRef;
import org.apache.lucene.util.StringHelper;

/**
 * Searches an impact index exactly, for Python. Safe for use by several threads at once.
 *
 * <p>Everything crosses in bulk and as bytes: queries come in as JSON lines, rankings go out in the {@link WireFormat}.
 */
public final class SignedSearcher implements Closeable {
  private static final String RAW = "raw";

  /** The mean frequency from which an index is not taken for one of texts, without a look at its terms. */
  private static final int MEAN_IMPACT = 16;

  /** So many terms are looked at. */
  private static final int MOST_TERMS = 1 << 17;

  /** So many documents of a segment are looked at. */
  private static final int MOST_NORMS = 1 << 10;

  private static final long NORM_OF_IMPACTS = 1;

  private final DirectoryReader reader;
  private final String field;
  private final ExternalIds externalIds;
  private final boolean mayRepeatIds;
  private final LiveCounts counts;
  private final BlockMaxima maxima; // of one segment; null for none
  private Passages passages; // null until they are counted
  private final Map<Map.Entry<String, Boolean>, FieldOrder> orders = new HashMap<>();
  private final WindowScorer.Statistics statistics = new WindowScorer.Statistics();

  /**
   * Opens an index, see {@link Commits#open}.
   *
   * @param field whose term frequencies are the impacts
   * @param hasManifest whether this package built the index, so that each id is one document's
   */
  public SignedSearcher(String path, String field, boolean hasManifest) throws IOException {
    this.reader = Commits.open(path);
    this.field = field;
    checkField();
    this.externalIds = new ExternalIds(reader);
    this.mayRepeatIds = !hasManifest && ExternalIds.mayRepeat(reader);
    this.counts = new LiveCounts(reader, field);
    try {
      this.maxima = BlockMaxima.open(reader, field);
    } catch (IOException e) {
      reader.close();
      throw new IOException(e.getMessage() + "; the file " + BlockMaxima.FILE + " may be deleted", e);
    }
  }

  private void checkField() throws IOException {
    FieldInfo info = FieldInfos.getMergedFieldInfos(reader).fieldInfo(field);
    if (reader.maxDoc() == 0) return;
    if (info != null && info.getIndexOptions().compareTo(IndexOptions.DOCS_AND_FREQS) >= 0) return;
    reader.close();
    throw new IllegalArgumentException("no field '" + field + "' with term frequencies, so no impacts");
  }

  /**
   * Whether the term frequencies seem to be those of texts. Nothing in an index of stock Anserini says so. With {@code
   * -impact} Anserini writes the same norm for all documents, otherwise their lengths. In texts, most terms never occur
   * twice in a document.
   */
  public boolean holdsTexts() throws IOException {
    Terms all = MultiTerms.getTerms(reader, field);
    if (all == null || FieldInfos.getMergedFieldInfos(reader).fieldInfo(SourceHash.FIELD) != null) return false;
    if (hasNormsOfImpacts() || all.getSumTotalTermFreq() >= MEAN_IMPACT * all.getSumDocFreq()) return false;
    int terms = 0;
    int single = 0;
    TermsEnum each = all.iterator();
    for (; terms < MOST_TERMS && each.next() != null; terms++) {
      if (each.totalTermFreq() == each.docFreq()) single++;
    }
    return 5L * single > 2L * terms;
  }

  /** Whether the first documents of each segment have the norms that Anserini's ImpactSimilarity writes. */
  private boolean hasNormsOfImpacts() throws IOException {
    for (LeafReaderContext leaf : reader.leaves()) {
      NumericDocValues norms = leaf.reader().getNormValues(field);
      if (norms == null) return false;
      for (int i = 0; i < MOST_NORMS && norms.nextDoc() != DocIdSetIterator.NO_MORE_DOCS; i++) {
        if (norms.longValue() != NORM_OF_IMPACTS) return false;
      }
    }
    return true;
  }

  /** Whether several documents may have the same id; false if it is certain that none have. */
  public boolean mayRepeatIds() {
    return mayRepeatIds;
  }

  /** Whether several documents have each id of a list, as {@link WireFormat#ids} reads it. */
  public boolean[] repeated(byte[] ids) throws IOException {
    int[][] found = ExternalIds.findAll(reader, WireFormat.ids(ids, 1).get(0));
    boolean[] repeated = new boolean[found.length];
    for (int i = 0; i < found.length; i++) repeated[i] = found[i].length > 1;
    return repeated;
  }

  /** Documents that are not deleted. */
  public int documentCount() {
    return reader.numDocs();
  }

  /** Identifies the commit that is open, whatever folder it is in. */
  public String commitId() {
    return StringHelper.idToString(((StandardDirectoryReader) reader).getSegmentInfos().getId());
  }

  /** What the last update has noted, see {@link Commits#UPDATE}; null if there was none. */
  public String update() throws IOException {
    return reader.getIndexCommit().getUserData().get(Commits.UPDATE);
  }

  /** Whether the sources of documents are stored, and whether their vectors are. */
  public boolean[] stored() throws IOException {
    boolean vectors = false;
    for (LeafReaderContext leaf : reader.leaves()) {
      LeafReader segment = leaf.reader();
      Terms terms = segment.terms(field);
      TermsEnum each = terms == null ? TermsEnum.EMPTY : terms.iterator();
      if (each.next() == null) continue;
      PostingsEnum postings = each.postings(null, PostingsEnum.NONE);
      vectors |= segment.termVectors().get(postings.nextDoc(), field) != null;
    }
    return new boolean[] {FieldInfos.getMergedFieldInfos(reader).fieldInfo(RAW) != null, vectors};
  }

  /** Documents that have a term. */
  public int fieldDocumentCount() throws IOException {
    return counts.documentsWithTerms();
  }

  /** How many documents have each of the terms (UTF-8, separated by line feeds). */
  public int[] documentFrequencies(byte[] terms) throws IOException {
    String[] texts = lines(terms);
    int[] frequencies = new int[texts.length];
    for (int i = 0; i < texts.length; i++) frequencies[i] = counts.documentsWith(texts[i]);
    return frequencies;
  }

  /**
   * Prepares a search of queries on several threads; {@link SearchBatch#proceed} does it.
   *
   * @param queries composed queries, one JSON line each, UTF-8
   * @param filters what {@link #filter} gave
   * @param filterOf the place in {@code filters} of each query's filter; −1 for none
   * @param thresholds for each query, the score below which documents may be left out; −∞ for none
   * @param afterScores for each query, the score of the hit behind which its ranking begins; NaN for none
   * @param afterIds the ids of these hits, as {@link WireFormat#ids} reads a list; any for none
   * @param smallestPart the least documents of a part, if parts are searched at once for a query
   */
  public SearchBatch<TopHitsCollector, TopHitsCollector.Ranking> search(byte[] queries, DocumentFilter[] filters,
      int[] filterOf, float[] thresholds, float[] afterScores, byte[] afterIds, int k, int threads, int smallestPart) {
    String[] lines = lines(queries);
    TopHitsCollector.Mark[] marks = marks(afterScores, afterIds);
    SearchBatch.Preparation<TopHitsCollector> preparation = (query, shared, deadline) -> {
      shared.raise(thresholds[query]);
      return starter(
          lines[query], filters, filterOf[query], () -> new TopHitsCollector(k, externalIds, marks[query], shared));
    };
    return new SearchBatch<>(reader, lines.length, preparation, WireFormat::rankings, threads, smallestPart);
  }

  /**
   * Prepares a search as {@link #search} does, whose hits are ordered by a field; see {@link SortedHits}.
   *
   * @param field a filter field
   * @param places see {@link SortedHits}
   */
  public SearchBatch<SortedHits, TopHitsCollector.Ranking> sorted(byte[] queries, DocumentFilter[] filters,
      int[] filterOf, String field, boolean descending, int[] places, int count, float[] afterScores, byte[] afterIds,
      int k, int threads, int smallestPart) throws IOException {
    String[] lines = lines(queries);
    TopHitsCollector.Mark[] marks = marks(afterScores, afterIds);
    FieldOrder order = order(field, descending);
    int all = places == null ? order.size() : count;
    if (all >= SortedHits.MOST_PLACES) {
      throw new IllegalArgumentException("the field '" + field + "' has " + all + " values, too many to sort by");
    }
    SearchBatch.Preparation<SortedHits> preparation = (query, shared, deadline) -> {
      return starter(lines[query], filters, filterOf[query], () -> {
        TopHitsCollector hits = new TopHitsCollector(k, externalIds, marks[query], shared);
        return new SortedHits(hits, order, descending, places, all);
      });
    };
    return new SearchBatch<>(reader, lines.length, preparation, WireFormat::rankings, threads, smallestPart);
  }

  private static TopHitsCollector.Mark[] marks(float[] scores, byte[] packed) {
    BytesRef[] ids = WireFormat.ids(packed, 1).get(0);
    TopHitsCollector.Mark[] marks = new TopHitsCollector.Mark[scores.length];
    for (int i = 0; i < marks.length; i++) {
      marks[i] = Float.isNaN(scores[i]) ? TopHitsCollector.Mark.NONE : new TopHitsCollector.Mark(scores[i], ids[i]);
    }
    return marks;
  }

  /** The values by which documents are sorted, ascending, as a list in JSON. */
  public byte[] sortValues(String field, boolean descending) throws IOException {
    return order(field, descending).values().getBytes(StandardCharsets.UTF_8);
  }

  private FieldOrder order(String field, boolean descending) throws IOException {
    DocumentFilter.checkFields(reader, List.of(field));
    synchronized (orders) {
      var asked = Map.entry(field, descending);
      FieldOrder known = orders.get(asked);
      if (known == null) orders.put(asked, known = new FieldOrder(reader, field, descending));
      return known;
    }
  }

  /**
   * Prepares to count the documents that queries match, as {@link #search} does; the last results are {@link
   * WireFormat#matches}.
   *
   * @param facets filter fields whose values are counted, UTF-8, one a line; empty for none
   * @param most how many values of each field are given
   * @param passagesOf a field whose values documents share that are counted once, as passages are; null for none
   */
  public SearchBatch<MatchCounter, ObjectNode> matches(byte[] queries, DocumentFilter[] filters, int[] filterOf,
      byte[] facets, int[] most, String passagesOf, int threads, int smallestPart) throws IOException {
    String[] lines = lines(queries);
    String[] fields = facets.length == 0 ? new String[0] : lines(facets);
    DocumentFilter.checkFields(reader, List.of(fields));
    List<MatchCounter.Facet> counted =
        IntStream.range(0, fields.length).mapToObj(i -> new MatchCounter.Facet(fields[i], most[i])).toList();
    Passages shared = passagesOf == null ? null : passages(passagesOf);
    SearchBatch.Preparation<MatchCounter> preparation = (query, bound, deadline) -> {
      if (shared != null && !shared.isRead(deadline)) return null;
      return starter(lines[query], filters, filterOf[query], () -> new MatchCounter(reader, counted, shared));
    };
    return new SearchBatch<>(reader, lines.length, preparation, WireFormat::matches, threads, smallestPart);
  }

  private synchronized Passages passages(String field) throws IOException {
    if (passages == null) passages = new Passages(reader, field);
    return passages;
  }

  private <C extends HitCollector> SearchBatch.Starter<C> starter(
      String query, DocumentFilter[] filters, int filterOf, Supplier<C> collectors) {
    DocumentFilter filter = filterOf < 0 ? null : filters[filterOf];
    ScoringTree tree = ScoringTree.parse(query);
    if (tree instanceof ScoringTree.All) {
      return (from, to) -> new AllDocuments<>(reader, from, to, filter, collectors.get());
    }
    return (from, to)
               -> new RunningSearch<>(reader, from, to, field, maxima, tree, filter, collectors.get(), this::addWork);
  }

  /** Reads a filter (JSON, see {@link DocumentFilter}); it keeps the documents that it finds. */
  public DocumentFilter filter(byte[] filter) throws IOException {
    return DocumentFilter.of(Json.MAPPER.readTree(filter));
  }

  /** What a filter finds here, as {@link DocumentFilter#describe} says it. */
  public byte[] describe(DocumentFilter filter) throws IOException {
    return filter.describe(reader);
  }

  private void addWork(WindowScorer.Statistics work) {
    synchronized (statistics) {
      statistics.add(work);
    }
  }

  /**
   * Scores given documents on several threads.
   *
   * @param queries composed queries, one JSON line each, UTF-8
   * @param documents the ids of each query's documents, as {@link WireFormat#ids} reads them
   * @param filter of several documents of an id, the best of those that it allows is meant; null for any
   * @return the scores of all documents, as {@link WireFormat#scores} writes them: NaN for one that its query does not
   *     match, +∞ for one that the index does not have
   */
  public byte[] score(byte[] queries, byte[] documents, DocumentFilter filter, int threads) throws IOException {
    String[] lines = lines(queries);
    List<BytesRef[]> ids = WireFormat.ids(documents, lines.length);
    return WireFormat.scores(Parallel.map(lines.length, threads, i -> {
      DocumentScorer scorer = new DocumentScorer(reader, field, ScoringTree.parse(lines[i]));
      return scorer.score(find(ids.get(i), scorer, filter));
    }));
  }

  /** The documents of ids, −1 for none. Where several have an id, it is the one that ranks first. */
  private int[] find(BytesRef[] ids, DocumentScorer scorer, DocumentFilter filter) throws IOException {
    if (!mayRepeatIds) return ExternalIds.find(reader, ids);
    int[][] found = ExternalIds.findAll(reader, ids);
    float[] scores = scorer.score(Arrays.stream(found).flatMapToInt(Arrays::stream).toArray());
    int[] best = new int[ids.length];
    int next = 0;
    for (int i = 0; i < ids.length; i++) {
      best[i] = found[i].length == 0 ? -1 : found[i][0];
      float highest = Float.NEGATIVE_INFINITY;
      for (int doc : found[i]) {
        float score = scores[next++];
        if (!(score > highest) || filter != null && !filter.allows(reader, doc)) continue;
        best[i] = doc;
        highest = score;
      }
    }
    return best;
  }

  /** Totals since the index was opened: postings read, documents scored in full. */
  public long[] workDone() {
    synchronized (statistics) {
      return new long[] {statistics.postingsRead, statistics.documentsScored};
    }
  }

  /**
   * Explains the score of one document.
   *
   * @param filter what {@link #filter} gave; null for none
   * @return JSON, see {@link Explainer}; null when the index has no such document
   */
  public byte[] explain(byte[] query, byte[] externalId, DocumentFilter filter) throws IOException {
    ScoringTree tree = ScoringTree.parse(text(query));
    int doc = find(new BytesRef[] {new BytesRef(externalId)}, new DocumentScorer(reader, field, tree), filter)[0];
    if (doc < 0) return null;
    ObjectNode explanation = new Explainer(reader, field, doc).explain(tree, filter);
    return explanation.toString().getBytes(StandardCharsets.UTF_8);
  }

  /** Whether the index has a document of that id. */
  public boolean has(byte[] externalId) throws IOException {
    return find(externalId) >= 0;
  }

  /** The stored source of a document; null when there is no such document or its source was not stored. */
  public byte[] raw(byte[] externalId) throws IOException {
    int doc = find(externalId);
    String raw = doc < 0 ? null : reader.storedFields().document(doc).get(RAW);
    return raw == null ? null : raw.getBytes(StandardCharsets.UTF_8);
  }

  /** The terms and impacts of a document, as JSON; null when there is no such document. */
  public byte[] vector(byte[] externalId) throws IOException {
    int doc = find(externalId);
    return doc < 0 ? null : DocumentVector.of(reader, field, doc).toString().getBytes(StandardCharsets.UTF_8);
  }

  private int find(byte[] externalId) throws IOException {
    return ExternalIds.find(reader, new BytesRef[] {new BytesRef(externalId)})[0];
  }

  private static String text(byte[] utf8) {
    return new String(utf8, StandardCharsets.UTF_8);
  }

  private static String[] lines(byte[] utf8) {
    return text(utf8).split("\n", -1);
  }

  @Override
  public void close() throws IOException {
    reader.close();
  }
}
