package io.compneg.index;

import com.fasterxml.jackson.core.JsonProcessingException;
import io.anserini.search.similarity.ImpactSimilarity;
import io.compneg.blocks.BlockMaxima;
import io.compneg.blocks.KeepOrderedMergePolicy;
import io.compneg.blocks.Optimizing;
import java.io.Closeable;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import org.apache.lucene.analysis.core.WhitespaceAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.Term;
import org.apache.lucene.store.AlreadyClosedException;
import org.apache.lucene.store.FSDirectory;
import org.apache.lucene.util.IOUtils;

/**
 * Writes an impact index with Anserini's fields, for Python: {@code id} (indexed, stored, doc values), {@code contents}
 * (impacts as term frequencies), and {@code raw} (the stored source); and with the filter fields of the sources, see
 * {@link DocumentFilter}. A document without a term can be looked up, but no search finds it.
 *
 * <p>Blocks of JSON lines come in and are indexed by several threads while the next are read. A document that cannot be
 * indexed is no exception. It becomes a problem in the answer: a line of text, in the order of the documents.
 */
public class ImpactIndexer implements Closeable {
  private static final String STATE = "state";

  private static final double HEAP_BYTES = Runtime.getRuntime().maxMemory();

  /** What Lucene may hold beside the vectors that wait, as a share of the heap, and what blocks that wait may hold. */
  private static final double BUFFER_SHARE = 16;

  private static final double QUEUE_SHARE = 8;

  /** A block as Python reads them, with the lines to store. */
  private static final double BLOCK_BYTES = 1 << 22;

  /** How an index is written; a JSON object in the constructor. */
  record Settings(String field, double impactScale, boolean signed, int pairTerms, List<String> pairs, int pairScale,
      boolean storeRaw, boolean storeDocvectors, List<String> filterFields, boolean shard, int threads,
      double memoryBufferMb, IndexWriterConfig.OpenMode mode) {}

  private record BlockResult(int documents, int empty, List<String> problems) {}

  private final Settings settings;
  protected final IndexWriter writer;
  final IndexingThreads.QuietMerges merging = new IndexingThreads.QuietMerges();
  protected final Path folder;
  private final Pairs pairs;
  private final ImpactInverter inverter; // null where Lucene must see each term of a document
  private final IndexingThreads threads;
  private final ThreadLocal<Vocabulary> vocabularies = ThreadLocal.withInitial(Vocabulary::new);
  private final Queue<Work<BlockResult>> pending = new ArrayDeque<>();
  private final DocumentMaker maker;
  private long documents;
  private long empty;
  private final int mostQueued;
  private Work<Void> merge; // what settle() or optimize() began
  private Optimizing optimizing;
  private final List<String> problems = new ArrayList<>(); // that nobody has been told
  private final RandomAccessFile exchange;

  /**
   * Starts an index in a folder, whose old index is replaced, or goes on from its last checkpoint.
   *
   * @param exchange the file in which blocks of documents are passed: pyjnius would end the process where the heap has
   *     no room for one, and here that is an error
   */
  public ImpactIndexer(String folder, String settings, String exchange) throws IOException {
    this(folder, settings, exchange, new Commits.KeepOne(null), BlockMaxima.UNFINISHED, BlockMaxima.FILE);
  }

  /** Starts from the commit that is kept. The files {@code removed} of the folder are deleted. */
  protected ImpactIndexer(String folder, String settings, String exchange, Commits.KeepOne commits, String... removed)
      throws IOException {
    this.folder = Path.of(folder);
    this.settings = parse(settings);
    pairs = new Pairs(this.settings.pairTerms, this.settings.pairs, this.settings.pairScale);
    boolean byDocument = this.settings.storeDocvectors || pairs.any(); // pairs hardly ever come twice
    double bufferMb = Math.min(this.settings.memoryBufferMb, HEAP_BYTES / BUFFER_SHARE / (1 << 20));
    inverter = byDocument ? null : new ImpactInverter(this.settings.field, bufferMb);
    maker = new DocumentMaker(this.settings, inverter);
    FSDirectory directory = FSDirectory.open(this.folder);
    IndexWriterConfig config = new IndexWriterConfig(new WhitespaceAnalyzer());
    config.setSimilarity(new ImpactSimilarity());
    if (inverter != null) config.setCodec(inverter.codec());
    config.setOpenMode(this.settings.mode);
    config.setRAMBufferSizeMB(bufferMb);
    config.setMergeScheduler(merging);
    config.setUseCompoundFile(false);
    config.setCommitOnClose(false);
    config.setMergePolicy(new KeepOrderedMergePolicy(directory)); // before a reader is opened, which may begin merges
    config.setIndexDeletionPolicy(commits);
    config.setIndexCommit(commits.kept(directory));
    this.exchange = new RandomAccessFile(exchange, "r");
    IndexWriter opened = null;
    try {
      writer = opened = new IndexWriter(directory, config); // if another one has the index, its files stay
      if (this.settings.mode != IndexWriterConfig.OpenMode.CREATE) recount();
      for (String file : removed) Files.deleteIfExists(this.folder.resolve(file));
    } catch (Throwable e) {
      IOUtils.closeWhileHandlingException(opened, this.exchange);
      throw e;
    }
    threads = new IndexingThreads(this.settings.threads, writer, pending);
    mostQueued = (int) Math.max(1, Math.min(2 * this.settings.threads, HEAP_BYTES / QUEUE_SHARE / BLOCK_BYTES));
  }

  private static Settings parse(String settings) {
    try {
      return Json.MAPPER.readValue(settings, Settings.class);
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException(e.getOriginalMessage(), e);
    }
  }

  /** The state of the commit from which the index goes on; null if there is none. */
  public String state() {
    if (writer.getLiveCommitData() == null) return null;
    for (Map.Entry<String, String> entry : writer.getLiveCommitData()) {
      if (entry.getKey().equals(stateKey())) return entry.getValue();
    }
    return null;
  }

  /** The field of the impacts. */
  protected final String field() {
    return settings.field;
  }

  /** Where the data of a commit have the state. */
  protected String stateKey() {
    return STATE;
  }

  /**
   * Queues documents, one JSON line each. Call {@link #collect} before more are queued.
   *
   * <p>The exchange holds, one after the other, the name of the file for messages, the block (see {@link
   * DocumentReader}), and what to store for each line, as many lines; all in UTF-8.
   *
   * @param nameBytes the size of the name
   * @param blockBytes the size of the block
   * @param sourceBytes the size of what to store, or -1 to store the lines themselves
   * @param firstLine the number of the block's first line
   */
  public void add(int nameBytes, int blockBytes, int sourceBytes, long firstLine) throws IOException {
    try {
      exchange.seek(0);
      String file = new String(received(nameBytes), StandardCharsets.UTF_8) + ":";
      byte[] lines = received(blockBytes);
      byte[] sources = sourceBytes < 0 ? null : received(sourceBytes);
      Work<BlockResult> block = new Work<>(() -> index(reader(lines), lines, sources, file, firstLine));
      pending.add(block);
      threads.start(block);
    } catch (OutOfMemoryError e) {
      throw threads.failure(e);
    }
  }

  private byte[] received(int size) throws IOException {
    byte[] bytes = new byte[size];
    exchange.readFully(bytes);
    return bytes;
  }

  protected final DocumentReader reader(byte[] lines) {
    return new DocumentReader(lines, settings.impactScale, settings.signed, pairs, vocabularies.get());
  }

  private BlockResult index(DocumentReader reader, byte[] lines, byte[] sources, String file, long firstLine)
      throws IOException {
    LineScanner raw = new LineScanner(sources == null ? lines : sources);
    MessageDigest hasher = SourceHash.hasher();
    List<String> problems = new ArrayList<>();
    int count = 0;
    int withoutTerm = 0;
    for (long number = firstLine; reader.nextLine(); number++) {
      raw.next();
      if (reader.blank()) continue;
      if (threads.isStopped()) throw new IOException("the indexer is closed");
      try {
        reader.read();
        Document document = maker.make(reader, raw, hasher);
        write(reader.id(), document);
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

  protected void write(String id, Document document) throws IOException {
    writer.addDocument(document);
  }

  /**
   * Waits for so long at most for documents.
   *
   * @param all whether to wait for every queued document; otherwise there is to be room for another block
   * @return the problems of the blocks that are finished by now, UTF-8, separated by line feeds; null when it has to be
   *     called again
   */
  public byte[] collect(boolean all, long milliseconds) throws IOException {
    try {
      return collected(all, milliseconds);
    } catch (OutOfMemoryError e) {
      throw threads.failure(e);
    }
  }

  private byte[] collected(boolean all, long milliseconds) throws IOException {
    while (pending.size() > (all ? 0 : mostQueued)) {
      if (!threads.isDone(pending.element(), milliseconds)) return null;
      BlockResult result = pending.remove().result();
      documents += result.documents;
      empty += result.empty;
      problems.addAll(result.problems);
    }
    byte[] text = String.join("\n", problems).getBytes(StandardCharsets.UTF_8);
    problems.clear();
    return text;
  }

  /** Documents in the index so far, and how many of them have no term. */
  public long[] counts() {
    return new long[] {documents, empty};
  }

  /**
   * Makes a checkpoint: what was added until now is durable, and a later indexer can resume from here. Call {@link
   * #collect} first.
   *
   * @param state a text that {@link #state} gives back to the later indexer, or null
   */
  public void commit(String state) throws IOException {
    try {
      Map<String, String> data = new TreeMap<>();
      if (state != null) data.put(stateKey(), state);
      if (settings.shard) data.put(DocumentFilter.DECLARED, filterFields());
      addData(data);
      writer.setLiveCommitData(data.entrySet());
      writer.commit();
    } catch (IOException | AlreadyClosedException | OutOfMemoryError e) {
      throw threads.failure(e);
    }
  }

  /** Adds what else the data of a commit have. */
  protected void addData(Map<String, String> data) {}

  protected final String filterFields() {
    return String.join("\n", settings.filterFields);
  }

  /**
   * The texts in filter fields that no range finds, as JSON: {@code {"numbers": {field: {"count": 2, "example": "7"}},
   * "dates": ...}}. Documents before a checkpoint from which the indexer goes on are not counted.
   */
  public byte[] unrangedTexts() throws IOException {
    return Json.MAPPER.writeValueAsBytes(maker.unrangedTexts());
  }

  /** The first of the filter fields that no document has; null when there is none. */
  public String missingField() throws IOException {
    try (DirectoryReader reader = DirectoryReader.open(writer)) {
      for (String field : settings.filterFields)
        if (reader.getDocCount(field) == 0) return field;
    }
    return null;
  }

  /**
   * Begins to merge into one segment; call {@link #optimized} until it is done.
   *
   * @param reorder whether documents that share terms shall stand together then, with {@link BlockMaxima}
   * @param required whether it is an error if there is not enough memory for that
   */
  public void optimize(boolean reorder, boolean required) {
    optimizing = new Optimizing(writer, settings.field, reorder ? maximaFile() : null, required, settings.threads);
    begin(optimizing);
  }

  /** The name of the file that {@link BlockMaxima} get. */
  protected String maximaFile() {
    return BlockMaxima.FILE;
  }

  /** Waits for the merges that are running. */
  protected final void awaitMerges() {
    merging.sync();
  }

  /** Begins long work; call {@link #optimized} until it is done. */
  protected final void begin(Callable<Void> work) {
    merge = new Work<>(work);
    threads.start(merge);
  }

  /** Whether {@link #optimize} has put the documents in another order. */
  public boolean reordered() {
    return optimizing.reordered();
  }

  /** What {@link #optimize} does at the moment. */
  public String stage() {
    return optimizing.stage();
  }

  /** The share of the work for the new order that is done. */
  public double ordered() {
    return optimizing.ordered();
  }

  /** Waits for so long at most; returns whether the index is merged. */
  public boolean optimized(long milliseconds) throws IOException {
    try {
      if (!threads.isDone(merge, milliseconds)) return false;
    } catch (OutOfMemoryError e) {
      throw threads.failure(e);
    }
    recount();
    return true;
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
    return String.join("\n", reader(lines).find(Set.of(texts(ids)))).getBytes(StandardCharsets.UTF_8);
  }

  /**
   * Removes all documents with one of these values (UTF-8, separated by line feeds) in a field: the id, or a filter
   * field.
   *
   * @param merge whether to remove them from the statistics and from {@link #counts} as well; otherwise {@link
   *     #optimize} does, so that the segments that hold them are not written twice
   */
  public void delete(byte[] values, String field, boolean merge) throws IOException {
    for (String value : texts(values)) writer.deleteDocuments(new Term(field, value));
    if (!merge) return;
    try { // by reflection, because its return type differs between Lucene 9 and 10
      IndexWriter.class.getMethod("forceMergeDeletes").invoke(writer);
    } catch (ReflectiveOperationException e) {
      throw threads.failure(e);
    }
    if (writer.hasDeletions()) writer.forceMerge(1); // the merge policy leaves some small segments alone
    recount();
  }

  protected static String[] texts(byte[] lines) {
    return new String(lines, StandardCharsets.UTF_8).split("\n");
  }

  private void recount() throws IOException {
    try (DirectoryReader reader = DirectoryReader.open(writer)) {
      documents = reader.numDocs();
      empty = documents - new LiveCounts(reader, settings.field).documentsWithTerms();
    }
  }

  /** Begins to close the index; call {@link #closed} until it is. What came after the last commit is lost. */
  @Override
  public void close() {
    threads.close(() -> {
      try (exchange) {
        rollBack();
      }
    });
  }

  /** Takes back what came after the last commit, and closes the writer. */
  protected void rollBack() throws IOException {
    writer.rollback();
  }

  /** Waits for so long at most; returns whether the index is closed, or closing it is given up. */
  public boolean closed(long milliseconds) throws InterruptedException {
    return threads.closed(milliseconds);
  }
}
