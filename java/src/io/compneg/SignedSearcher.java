package io.compneg;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.Closeable;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.FieldInfo;
import org.apache.lucene.index.FieldInfos;
import org.apache.lucene.index.IndexOptions;
import org.apache.lucene.index.Term;
import org.apache.lucene.store.FSDirectory;
import org.apache.lucene.util.BytesRef;

/**
 * The door for Python to an impact index. Everything crosses it in bulk and as bytes: composed queries as
 * JSON lines in, rankings as one packed array out.
 */
public final class SignedSearcher implements Closeable {
  private static final String RAW = "raw";

  private final DirectoryReader reader;
  private final String field;
  private final ImpactSearch search;
  private final WindowScorer.Statistics statistics = new WindowScorer.Statistics();

  /** Opens the index in a folder; impacts are the term frequencies of {@code field}. */
  public SignedSearcher(String folder, String field) throws IOException {
    this.reader = DirectoryReader.open(FSDirectory.open(Path.of(folder)));
    this.field = field;
    checkField();
    this.search = new ImpactSearch(reader, field);
  }

  private void checkField() throws IOException {
    FieldInfo info = FieldInfos.getMergedFieldInfos(reader).fieldInfo(field);
    if (reader.maxDoc() == 0) return;
    if (info != null && info.getIndexOptions().compareTo(IndexOptions.DOCS_AND_FREQS) >= 0) return;
    reader.close();
    throw new IllegalArgumentException("no field '" + field + "' with term frequencies, so no impacts");
  }

  /** Documents that are not deleted. */
  public int documentCount() {
    return reader.numDocs();
  }

  /** Documents that have any term, as document frequencies count them: deleted ones that are not merged away included. */
  public int fieldDocumentCount() throws IOException {
    return reader.getDocCount(field);
  }

  /** How many documents have each of the terms (UTF-8, separated by line feeds). */
  public int[] documentFrequencies(byte[] terms) throws IOException {
    String[] texts = lines(terms);
    int[] frequencies = new int[texts.length];
    for (int i = 0; i < texts.length; i++) frequencies[i] = reader.docFreq(new Term(field, texts[i]));
    return frequencies;
  }

  /**
   * Searches many queries on several threads.
   *
   * @param queries composed queries, one JSON line each, UTF-8
   * @return little-endian: the number of hits of each query (int32), then all scores (float32), then all ids,
   *     UTF-8, each followed by a NUL
   */
  public byte[] search(byte[] queries, int k, int threads) throws IOException {
    List<Tasks.Task<TopHits.Ranking>> searches = new ArrayList<>();
    for (String line : lines(queries)) searches.add(() -> searchOne(line, k));
    return Packed.rankings(Tasks.runAll(searches, threads));
  }

  /**
   * Scores given documents for many queries on several threads.
   *
   * @param queries composed queries, one JSON line each, UTF-8
   * @param documents little-endian: how many documents each query has (int32), then all their ids, UTF-8, each
   *     followed by a NUL
   * @return little-endian: the scores of all documents (float32), NaN for one that its query does not match, +∞
   *     for one that the index does not have
   */
  public byte[] score(byte[] queries, byte[] documents, int threads) throws IOException {
    String[] lines = lines(queries);
    List<BytesRef[]> ids = Packed.ids(documents, lines.length);
    List<Tasks.Task<float[]>> tasks = new ArrayList<>();
    for (int i = 0; i < lines.length; i++) {
      String line = lines[i];
      BytesRef[] own = ids.get(i);
      tasks.add(() -> new DocumentScorer(reader, field, ScoringTree.parse(line)).score(ExternalIds.find(reader, own)));
    }
    return Packed.scores(Tasks.runAll(tasks, threads));
  }

  private TopHits.Ranking searchOne(String line, int k) throws IOException {
    WindowScorer.Statistics work = new WindowScorer.Statistics();
    TopHits.Ranking ranking = search.search(ScoringTree.parse(line), k, work);
    synchronized (statistics) {
      statistics.add(work);
    }
    return ranking;
  }

  /** Totals since the index was opened: windows, windows skipped, postings read, documents scored in full. */
  public long[] workDone() {
    synchronized (statistics) {
      return statistics.toArray();
    }
  }

  /**
   * The score of one document, taken apart: the query's tree as JSON with every term's impact and
   * contribution.
   *
   * @return null when the index has no such document
   */
  public byte[] explain(byte[] query, byte[] externalId) throws IOException {
    int doc = find(externalId);
    if (doc < 0) return null;
    ObjectNode explanation = new Explainer(reader, field, doc).explain(ScoringTree.parse(text(query)));
    return explanation.toString().getBytes(StandardCharsets.UTF_8);
  }

  /** The stored source of a document; null when there is no such document or its source was not stored. */
  public byte[] raw(byte[] externalId) throws IOException {
    int doc = find(externalId);
    String raw = doc < 0 ? null : reader.storedFields().document(doc).get(RAW);
    return raw == null ? null : raw.getBytes(StandardCharsets.UTF_8);
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
