package io.compneg;

import com.fasterxml.jackson.core.JsonProcessingException;
import io.anserini.search.similarity.ImpactSimilarity;
import java.io.Closeable;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.lucene.analysis.core.WhitespaceAnalyzer;
import org.apache.lucene.document.BinaryDocValuesField;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.FieldType;
import org.apache.lucene.document.StoredField;
import org.apache.lucene.document.StringField;
import org.apache.lucene.index.CodecReader;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexOptions;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.SortingCodecReader;
import org.apache.lucene.index.Term;
import org.apache.lucene.index.TieredMergePolicy;
import org.apache.lucene.store.AlreadyClosedException;
import org.apache.lucene.store.FSDirectory;
import org.apache.lucene.util.BytesRef;

/**
 * Writes an impact index with Anserini's fields, for Python: {@code id} (indexed, stored, doc values), {@code contents}
 * (impacts as term frequencies), and {@code raw} (the stored source); and with the filter fields of the sources, see
 * {@link DocumentFilter}. A document without a term can be looked up, but
 * no search finds it.
 *
 * <p>Blocks of JSON lines come in and are indexed by several threads while the next are read. A document that cannot be
 * indexed is no exception. It becomes a problem in the answer: a line of text, in the order of the documents, whatever
 * the threads did.
 */
public final class ImpactIndexer implements Closeable {
  private static final String STATE = "state";

  /** How an index is written; a JSON object in the constructor. */
  record Settings(String field, double impactScale, boolean signed, int pairTerms, boolean storeRaw,
      boolean storeDocvectors, List<String> filterFields, boolean shard, int threads, double memoryBufferMb,
      boolean resume) {}

  private record BlockResult(int documents, int empty, List<String> problems) {}

  private final Settings settings;
  private final FieldType impacts = new FieldType();
  private final ImpactInverter inverter; // null where Lucene must see each term of a document
  private final IndexWriter writer;
  private final ExecutorService pool;
  private final ThreadLocal<Vocabulary> vocabularies = ThreadLocal.withInitial(Vocabulary::new);
  private final Queue<Future<BlockResult>> pending = new ArrayDeque<>();
  private long documents;
  private long empty;
  private Future<Void> optimizing;

  /** Starts an index in a folder, whose old index is replaced, or goes on from its last checkpoint. */
  public ImpactIndexer(String folder, String settings) throws IOException {
    this.settings = parse(settings);
    impacts.setTokenized(true);
    impacts.setIndexOptions(IndexOptions.DOCS_AND_FREQS);
    impacts.setStoreTermVectors(this.settings.storeDocvectors);
    impacts.freeze();
    boolean byDocument = this.settings.storeDocvectors || this.settings.pairTerms > 0; // pairs hardly ever come twice
    inverter = byDocument ? null : new ImpactInverter(this.settings.field, this.settings.memoryBufferMb);
    FSDirectory directory = FSDirectory.open(Path.of(folder));
    TieredMergePolicy merges = new TieredMergePolicy();
    merges.setForceMergeDeletesPctAllowed(0);
    boolean resumed = this.settings.resume && DirectoryReader.indexExists(directory);
    IndexWriterConfig config = new IndexWriterConfig(new WhitespaceAnalyzer());
    config.setSimilarity(new ImpactSimilarity());
    if (inverter != null) config.setCodec(inverter.codec());
    config.setOpenMode(resumed ? IndexWriterConfig.OpenMode.APPEND : IndexWriterConfig.OpenMode.CREATE);
    config.setRAMBufferSizeMB(this.settings.memoryBufferMb);
    config.setUseCompoundFile(false);
    config.setCommitOnClose(false);
    config.setMergePolicy(merges);
    writer = new IndexWriter(directory, config); // if another one has the index, its files stay
    for (String file : List.of(BlockMaxima.FILE, BlockMaxima.UNFINISHED)) Files.deleteIfExists(Path.of(folder, file));
    if (resumed) recount();
    pool = Executors.newFixedThreadPool(this.settings.threads);
  }

  private static Settings parse(String settings) {
    try {
      return ScoringTree.JSON.readValue(settings, Settings.class);
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException(e.getOriginalMessage(), e);
    }
  }

  /** The state of the checkpoint from which the index was resumed, see {@link #commit}; otherwise null. */
  public String state() {
    if (writer.getLiveCommitData() == null) return null;
    for (Map.Entry<String, String> entry : writer.getLiveCommitData()) {
      if (entry.getKey().equals(STATE)) return entry.getValue();
    }
    return null;
  }

  /**
   * Queues documents, one JSON line each. Waits only while too many blocks are queued.
   *
   * @param lines the block, UTF-8; see {@link DocumentReader}
   * @param sources what to store for each line, as many lines, or null to store the lines themselves
   * @param file the name of the file, for messages
   * @param firstLine the number of the block's first line
   * @return the problems of the blocks that are finished by now, UTF-8, separated by line feeds
   */
  public byte[] add(byte[] lines, byte[] sources, String file, long firstLine) throws IOException {
    pending.add(pool.submit(() -> index(reader(lines), lines, sources, file + ":", firstLine)));
    return collect(2 * settings.threads);
  }

  private DocumentReader reader(byte[] lines) {
    return new DocumentReader(lines, settings.impactScale, settings.signed, settings.pairTerms, vocabularies.get());
  }

  private BlockResult index(DocumentReader reader, byte[] lines, byte[] sources, String file, long firstLine)
      throws IOException {
    LineScanner raw = new LineScanner(sources == null ? lines : sources);
    List<String> problems = new ArrayList<>();
    int count = 0;
    int withoutTerm = 0;
    for (long number = firstLine; reader.nextLine(); number++) {
      raw.next();
      if (reader.blank()) continue;
      try {
        reader.read();
        writer.addDocument(document(reader, raw));
      } catch (DocumentReader.BadDocument bad) {
        problems.add(file + number + ": " + bad.getMessage());
        continue;
      }
      count++;
      if (reader.vector().size() == 0) withoutTerm++;
    }
    if (inverter != null && inverter.isFull()) writer.flushNextBuffer();
    return new BlockResult(count, withoutTerm, problems);
  }

  private Document document(DocumentReader reader, LineScanner raw) throws IOException, DocumentReader.BadDocument {
    Document document = new Document();
    document.add(new StringField(ExternalIds.FIELD, reader.id(), Field.Store.YES));
    document.add(new BinaryDocValuesField(ExternalIds.FIELD, new BytesRef(reader.id()))); // breaks ties by docid
    if (settings.storeRaw) document.add(new StoredField("raw", raw.text()));
    try {
      if (!settings.filterFields.isEmpty()) DocumentFilter.addValues(document, settings.filterFields, raw.text());
    } catch (IllegalArgumentException e) {
      throw new DocumentReader.BadDocument(e.getMessage());
    }
    ImpactVector vector = reader.vector();
    boolean waits = inverter != null && vector.size() > 0;
    document.add(new Field(settings.field, waits ? inverter.add(vector) : new ImpactTokenStream(vector), impacts));
    return document;
  }

  /** Waits until at most so many blocks are queued; returns the problems of those that were finished. */
  private byte[] collect(int queued) throws IOException {
    List<String> problems = new ArrayList<>();
    while (pending.size() > queued) {
      BlockResult result = result(pending.remove());
      documents += result.documents;
      empty += result.empty;
      problems.addAll(result.problems);
    }
    return String.join("\n", problems).getBytes(StandardCharsets.UTF_8);
  }

  private BlockResult result(Future<BlockResult> block) throws IOException {
    try {
      return block.get();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted", e);
    } catch (ExecutionException e) {
      throw failure(e.getCause());
    }
  }

  /** The first cause of a failure. Once a disk is full, Lucene only says that its writer is closed. */
  private IOException failure(Throwable cause) {
    Throwable first = cause instanceof AlreadyClosedException ? writer.getTragicException() : cause;
    for (Throwable t = first == null ? cause : first;; t = t.getCause()) {
      if (t.getCause() == null) return new IOException(t.getMessage() == null ? t.toString() : t.getMessage(), cause);
    }
  }

  /** Waits until every queued document is in; returns the problems as {@link #add} does. */
  public byte[] drain() throws IOException {
    return collect(0);
  }

  /** Documents in the index so far, and how many of them have no term. */
  public long[] counts() {
    return new long[] {documents, empty};
  }

  /**
   * Makes a checkpoint: what was added until now is durable, and a later indexer can resume from here. Call {@link
   * #drain} first.
   *
   * @param state a text that {@link #state} gives back to the later indexer, or null
   */
  public void commit(String state) throws IOException {
    try {
      Map<String, String> data = new TreeMap<>();
      if (state != null) data.put(STATE, state);
      if (settings.shard) data.put(DocumentFilter.DECLARED, String.join("\n", settings.filterFields));
      writer.setLiveCommitData(data.entrySet());
      writer.commit();
    } catch (IOException | AlreadyClosedException e) {
      throw failure(e);
    }
  }

  /** The first of the filter fields that no document has; null when there is none. */
  public String missingField() throws IOException {
    try (DirectoryReader reader = DirectoryReader.open(writer)) {
      for (String field : settings.filterFields) {
        if (reader.getDocCount(field) == 0) return field;
      }
    }
    return null;
  }

  /**
   * Begins to merge into one segment; call {@link #optimized} until it is done.
   *
   * @param reorder whether documents that share terms shall stand together then, with {@link BlockMaxima}
   */
  public void optimize(boolean reorder) {
    optimizing = pool.submit(() -> {
      writer.forceMerge(1);
      if (reorder) reorder();
      return null;
    });
  }

  /** Writes the segment again in another order. The commit in the folder stays as it is until the next one. */
  private void reorder() throws IOException, InterruptedException {
    try (DirectoryReader reader = DirectoryReader.open(writer)) {
      if (reader.leaves().isEmpty()) return;
      if (reader.leaves().size() > 1) throw new IllegalStateException("the index is not merged");
      CodecReader segment = (CodecReader) reader.leaves().get(0).reader();
      long share = Runtime.getRuntime().maxMemory() / 4; // of the heap: not what is free now, which differs
      int[] order = GraphBisection.order(segment, settings.field, settings.threads, share);
      writer.deleteAll(); // the reader keeps its files until it is closed
      writer.addIndexes(SortingCodecReader.wrap(segment, new NewOrder(order), null));
    }
    try (DirectoryReader reader = DirectoryReader.open(writer)) {
      BlockMaxima.write(reader.leaves().get(0).reader(), settings.field, writer.getDirectory());
    }
  }

  /** Waits for so long at most; returns whether the index is merged. */
  public boolean optimized(long milliseconds) throws IOException {
    try {
      optimizing.get(milliseconds, TimeUnit.MILLISECONDS);
      recount();
      return true;
    } catch (TimeoutException e) {
      return false;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted", e);
    } catch (ExecutionException e) {
      throw failure(e.getCause());
    }
  }

  /**
   * The first ids that more than one document has, UTF-8, separated by line feeds. They are found in the index, so that
   * no list of all ids is in memory.
   */
  public byte[] duplicateIds(int most) throws IOException {
    try (DirectoryReader reader = DirectoryReader.open(writer)) {
      return String.join("\n", ExternalIds.duplicates(reader, most)).getBytes(StandardCharsets.UTF_8);
    }
  }

  /**
   * Finds documents of these ids (UTF-8, separated by line feeds) in a block. For each one that can be indexed the
   * answer has the number of its line, from 0, a space, and its id, separated by line feeds.
   */
  public byte[] find(byte[] lines, byte[] ids) throws IOException {
    Set<String> wanted = Set.of(texts(ids));
    List<String> found = new ArrayList<>();
    DocumentReader reader = reader(lines);
    for (int number = 0; reader.nextLine(); number++) {
      if (reader.blank()) continue;
      try {
        reader.read();
        if (wanted.contains(reader.id())) found.add(number + " " + reader.id());
      } catch (DocumentReader.BadDocument bad) {
        // it is not in the index either
      }
    }
    return String.join("\n", found).getBytes(StandardCharsets.UTF_8);
  }

  /**
   * Removes all documents of these ids (UTF-8, separated by line feeds).
   *
   * @param merge whether to remove them from the statistics and from {@link #counts} as well; otherwise {@link
   *     #optimize} does, so that the segments that hold them are not written twice
   */
  public void delete(byte[] ids, boolean merge) throws IOException {
    for (String id : texts(ids)) writer.deleteDocuments(new Term(ExternalIds.FIELD, id));
    if (!merge) return;
    try { // by reflection, because its return type differs between Lucene 9 and 10
      IndexWriter.class.getMethod("forceMergeDeletes").invoke(writer);
    } catch (ReflectiveOperationException e) {
      throw failure(e);
    }
    if (writer.hasDeletions()) writer.forceMerge(1); // the merge policy leaves some small segments alone
    recount();
  }

  private static String[] texts(byte[] lines) {
    return new String(lines, StandardCharsets.UTF_8).split("\n");
  }

  private void recount() throws IOException {
    try (DirectoryReader reader = DirectoryReader.open(writer)) {
      documents = reader.numDocs();
      empty = documents - reader.getDocCount(settings.field);
    }
  }

  /** Closes the index. What came after the last commit is lost. */
  @Override
  public void close() throws IOException {
    pool.shutdownNow();
    try {
      pool.awaitTermination(1, TimeUnit.MINUTES);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    writer.rollback();
  }
}
