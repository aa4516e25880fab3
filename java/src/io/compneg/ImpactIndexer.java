package io.compneg;

import com.fasterxml.jackson.core.JsonProcessingException;
import io.anserini.search.similarity.ImpactSimilarity;
import java.io.Closeable;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;
import org.apache.lucene.analysis.core.WhitespaceAnalyzer;
import org.apache.lucene.document.BinaryDocValuesField;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.FieldType;
import org.apache.lucene.document.NumericDocValuesField;
import org.apache.lucene.document.StoredField;
import org.apache.lucene.document.StringField;
import org.apache.lucene.index.CodecReader;
import org.apache.lucene.index.ConcurrentMergeScheduler;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexOptions;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.MergeTrigger;
import org.apache.lucene.index.SegmentCommitInfo;
import org.apache.lucene.index.SegmentInfos;
import org.apache.lucene.index.Term;
import org.apache.lucene.index.TieredMergePolicy;
import org.apache.lucene.store.AlreadyClosedException;
import org.apache.lucene.store.Directory;
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
  /** In the data of a commit: what {@link #commit} gets in an update. */
  static final String UPDATE = "update";

  private static final String STATE = "state";

  /** What Lucene may hold beside the vectors that wait, as a share of the heap, and what blocks that wait may hold. */
  private static final double BUFFER_SHARE = 16;

  private static final double QUEUE_SHARE = 8;

  /** A block as Python reads them, with the lines to store. */
  private static final double BLOCK_BYTES = 1 << 22;

  /** So long closing waits for what runs. A thread that ran out of memory may leave others waiting for ever. */
  private static final int CLOSE_SECONDS = 60;

  private static final int CLOSE_SECONDS_IF_BROKEN = 5;

  /** How an index is written; a JSON object in the constructor. */
  record Settings(String field, double impactScale, boolean signed, int pairTerms, boolean storeRaw,
      boolean storeDocvectors, List<String> filterFields, boolean shard, int threads, double memoryBufferMb,
      boolean resume, boolean update, String commit) {}

  private record BlockResult(int documents, int empty, List<String> problems) {}

  private final Path folder;
  private final Settings settings;
  private final UpdateBase base; // null for a new index
  private final Commits.KeepOne commits;
  private final QuietMerges merging = new QuietMerges();
  private final FieldType impacts = new FieldType();
  private final ImpactInverter inverter; // null where Lucene must see each term of a document
  private final IndexWriter writer;
  private final ExecutorService pool;
  private final ThreadLocal<Vocabulary> vocabularies = ThreadLocal.withInitial(Vocabulary::new);
  private final Queue<Work<BlockResult>> pending = new ArrayDeque<>();
  private final ConcurrentMap<String, DocumentFilter.NumericTexts> numericTexts = new ConcurrentHashMap<>();
  private long documents;
  private long empty;
  private final int mostQueued;
  private Work<Void> optimizing;
  private volatile String stage = "merging";
  private final LongAdder divided = new LongAdder();
  private volatile long toDivide;
  private volatile boolean reordered;
  private volatile boolean committed;
  private final List<String> problems = new ArrayList<>(); // that nobody has been told
  private boolean broken;
  private volatile boolean died; // a thread of the pool, whose own locks and queues break when the heap is full
  private final RandomAccessFile exchange;
  private final Heap heap = new Heap();
  private byte[] reserve = new byte[1 << 19];
  private byte[] lastReserve = new byte[1 << 19];
  private Thread closing;
  private long closingEnds;

  /**
   * Starts an index in a folder, whose old index is replaced, or goes on from its last checkpoint; or updates an index.
   *
   * @param exchange the file in which blocks of documents are passed: pyjnius would end the process where the heap has
   *     no room for one, and here that is an error
   */
  public ImpactIndexer(String folder, String settings, String exchange) throws IOException {
    this.folder = Path.of(folder);
    this.settings = parse(settings);
    if (Thread.getDefaultUncaughtExceptionHandler() == null) Thread.setDefaultUncaughtExceptionHandler(Heap::report);
    impacts.setTokenized(true);
    impacts.setIndexOptions(IndexOptions.DOCS_AND_FREQS);
    impacts.setStoreTermVectors(this.settings.storeDocvectors);
    impacts.freeze();
    boolean byDocument = this.settings.storeDocvectors || this.settings.pairTerms > 0; // pairs hardly ever come twice
    double bufferMb = Math.min(this.settings.memoryBufferMb, heap() / BUFFER_SHARE / (1 << 20));
    inverter = byDocument ? null : new ImpactInverter(this.settings.field, bufferMb);
    FSDirectory directory = FSDirectory.open(this.folder);
    commits = new Commits.KeepOne(this.settings.commit);
    boolean updates = this.settings.update;
    SparesOrdered merges = new SparesOrdered(directory); // before a reader is opened, which may begin merges
    merges.setForceMergeDeletesPctAllowed(0);
    boolean resumed = updates || this.settings.resume && DirectoryReader.indexExists(directory);
    IndexWriterConfig config = new IndexWriterConfig(new WhitespaceAnalyzer());
    config.setSimilarity(new ImpactSimilarity());
    if (inverter != null) config.setCodec(inverter.codec());
    config.setOpenMode(resumed ? IndexWriterConfig.OpenMode.APPEND : IndexWriterConfig.OpenMode.CREATE);
    config.setRAMBufferSizeMB(bufferMb);
    config.setMergeScheduler(merging);
    config.setUseCompoundFile(false);
    config.setCommitOnClose(false);
    config.setMergePolicy(merges);
    config.setIndexDeletionPolicy(commits);
    if (this.settings.commit != null) config.setIndexCommit(Commits.find(directory, this.settings.commit));
    writer = new IndexWriter(directory, config); // if another one has the index, its files stay
    base = updates ? new UpdateBase(DirectoryReader.open(writer)) : null;
    Files.deleteIfExists(this.folder.resolve(BlockMaxima.UNFINISHED));
    if (!updates) Files.deleteIfExists(this.folder.resolve(BlockMaxima.FILE));
    if (updates) BlockMaxima.takeNext(base.reader());
    if (resumed) recount();
    this.exchange = new RandomAccessFile(exchange, "r");
    pool = Executors.newFixedThreadPool(this.settings.threads, this::worker);
    mostQueued = (int) Math.max(1, Math.min(2 * this.settings.threads, heap() / QUEUE_SHARE / BLOCK_BYTES));
  }

  private static Settings parse(String settings) {
    try {
      return ScoringTree.JSON.readValue(settings, Settings.class);
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException(e.getOriginalMessage(), e);
    }
  }

  /** The state of the checkpoint from which the index was resumed, or of the last update; null if there is none. */
  public String state() {
    if (writer.getLiveCommitData() == null) return null;
    for (Map.Entry<String, String> entry : writer.getLiveCommitData()) {
      if (entry.getKey().equals(base == null ? STATE : UPDATE)) return entry.getValue();
    }
    return null;
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
      pool.execute(block);
    } catch (OutOfMemoryError e) {
      throw failure(e);
    }
  }

  private byte[] received(int size) throws IOException {
    byte[] bytes = new byte[size];
    exchange.readFully(bytes);
    return bytes;
  }

  private DocumentReader reader(byte[] lines) {
    return new DocumentReader(lines, settings.impactScale, settings.signed, settings.pairTerms, vocabularies.get());
  }

  private BlockResult index(DocumentReader reader, byte[] lines, byte[] sources, String file, long firstLine)
      throws IOException {
    LineScanner raw = new LineScanner(sources == null ? lines : sources);
    MessageDigest hasher = UpdateBase.hasher();
    List<String> problems = new ArrayList<>();
    int count = 0;
    int withoutTerm = 0;
    for (long number = firstLine; reader.nextLine(); number++) {
      raw.next();
      if (reader.blank()) continue;
      if (pool.isShutdown()) throw new IOException("the indexer is closed");
      try {
        reader.read();
        Document document = document(reader, raw, hasher);
        if (base == null) {
          writer.addDocument(document);
        } else {
          writer.updateDocument(new Term(ExternalIds.FIELD, reader.id()), document);
        }
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

  private Document document(DocumentReader reader, LineScanner raw, MessageDigest hasher)
      throws IOException, DocumentReader.BadDocument {
    Document document = new Document();
    document.add(new StringField(ExternalIds.FIELD, reader.id(), Field.Store.YES));
    document.add(new BinaryDocValuesField(ExternalIds.FIELD, new BytesRef(reader.id()))); // breaks ties by docid
    document.add(new NumericDocValuesField(UpdateBase.HASH, raw.hash(hasher)));
    if (settings.storeRaw) document.add(new StoredField("raw", raw.text()));
    try {
      if (!settings.filterFields.isEmpty()) {
        DocumentFilter.addValues(document, settings.filterFields, raw.text(), numericTexts);
      }
    } catch (IllegalArgumentException e) {
      throw new DocumentReader.BadDocument(e.getMessage());
    }
    ImpactVector vector = reader.vector();
    boolean waits = inverter != null && vector.size() > 0;
    document.add(new Field(settings.field, waits ? inverter.add(vector) : new ImpactTokenStream(vector), impacts));
    return document;
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
      throw failure(e);
    }
  }

  private byte[] collected(boolean all, long milliseconds) throws IOException {
    while (pending.size() > (all ? 0 : mostQueued)) {
      if (!isDone(pending.element(), milliseconds)) return null;
      BlockResult result = pending.remove().result();
      documents += result.documents;
      empty += result.empty;
      problems.addAll(result.problems);
    }
    byte[] text = String.join("\n", problems).getBytes(StandardCharsets.UTF_8);
    problems.clear();
    return text;
  }

  /** Whether work is done. Another failure ends the wait: what failed may never let go of what this waits for. */
  private boolean isDone(Work<?> work, long milliseconds) throws IOException {
    try {
      if (!work.isDone(milliseconds)) {
        heap.checkProgress();
        if (died) throw failure(new OutOfMemoryError());
        for (Work<?> other : pending) {
          if (other.failure() != null) throw failure(other.failure());
        }
        return false;
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted", e);
    }
    if (work.failure() != null) throw failure(work.failure());
    return true;
  }

  /** The first cause of a failure. Once a disk is full, Lucene only says that its writer is closed. */
  private IOException failure(Throwable cause) {
    broken = true;
    Throwable tragedy = writer.getTragicException();
    Throwable first = cause instanceof AlreadyClosedException && tragedy != null ? tragedy : cause;
    while (first.getCause() != null && !(first instanceof Error)) first = first.getCause();
    if (first instanceof Error error) {
      makeRoom();
      throw error;
    }
    return new IOException(first.getMessage() == null ? first.toString() : first.getMessage(), cause);
  }

  /** Documents in the index so far, and how many of them have no term. */
  public long[] counts() {
    return new long[] {documents, empty};
  }

  /**
   * Makes a checkpoint: what was added until now is durable, and a later indexer can resume from here. Call {@link
   * #collect} first.
   *
   * @param state a text that {@link #state} gives back to the later indexer or update, or null
   */
  public void commit(String state) throws IOException {
    try {
      Map<String, String> data = new TreeMap<>();
      if (state != null) data.put(base == null ? STATE : UPDATE, state);
      String fields = String.join("\n", settings.filterFields);
      if (settings.shard) data.put(DocumentFilter.DECLARED, fields);
      if (base != null) data.put(DocumentFilter.KNOWN, fields);
      writer.setLiveCommitData(data.entrySet());
      writer.commit();
      committed = true;
    } catch (IOException | AlreadyClosedException | OutOfMemoryError e) {
      throw failure(e);
    }
  }

  /**
   * The numbers that documents have as texts in filter fields, as JSON: {@code {field: {"count": 2, "example": "7"}}}.
   * Documents before a checkpoint from which the indexer goes on are not among them.
   */
  public byte[] numericTexts() throws IOException {
    return ScoringTree.JSON.writeValueAsBytes(numericTexts);
  }

  /**
   * Compares the documents of a block with those of the index that is updated, see {@link UpdateBase#compare}.
   *
   * @param sources what would be stored for each line; empty to store the lines themselves
   */
  public byte[] compare(byte[] lines, byte[] sources, boolean remembers) throws IOException {
    return base.compare(reader(lines), sources.length == 0 ? lines : sources, remembers);
  }

  /** Removes the documents of ids (UTF-8, separated by line feeds) in an update; returns what each id is here. */
  public byte[] remove(byte[] ids) throws IOException {
    delete(ids, false);
    return base.take(Arrays.stream(texts(ids)).map(BytesRef::new).toList());
  }

  /** Begins to write all documents and to do the merges that are due; call {@link #optimized} until it is done. */
  public void settle() {
    optimizing = new Work<>(() -> {
      writer.flush();
      writer.maybeMerge();
      merging.sync();
      return null;
    });
    pool.execute(optimizing);
  }

  /** Removes the files of the commit that an update began with. Until then it can be opened beside the new one. */
  public void release() throws IOException {
    base.close(); // while the writer is open, which removes them
    commits.release();
    writer.deleteUnusedFiles();
    try (DirectoryReader reader = DirectoryReader.open(writer)) {
      BlockMaxima.takeNext(reader);
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
   * @param required whether it is an error if there is not enough memory for that
   */
  public void optimize(boolean reorder, boolean required) {
    optimizing = new Work<>(() -> {
      writer.forceMerge(1);
      if (reorder) reorder(required);
      return null;
    });
    pool.execute(optimizing);
  }

  /** Writes the segment again in another order. The commit in the folder stays as it is until the next one. */
  private void reorder(boolean required) throws IOException, InterruptedException {
    stage = "reordering";
    try (DirectoryReader reader = DirectoryReader.open(writer)) {
      if (reader.leaves().isEmpty()) return;
      if (reader.leaves().size() > 1) throw new IllegalStateException("the index is not merged");
      CodecReader segment = (CodecReader) reader.leaves().get(0).reader();
      long share = Runtime.getRuntime().maxMemory() / 4; // of the heap: not what is free now, which differs
      toDivide = GraphBisection.work(segment.maxDoc());
      int[] order;
      try {
        order = GraphBisection.order(segment, settings.field, settings.threads, share, divided);
      } catch (OutOfMemoryError e) {
        if (required) throw e;
        return; // nothing is written yet
      }
      stage = "writing in the new order";
      writer.deleteAll(); // the reader keeps its files until it is closed
      writer.addIndexes(new ReorderedSegment(segment, new NewOrder(order), settings.field));
    }
    stage = "writing blocks";
    try (DirectoryReader reader = DirectoryReader.open(writer)) {
      String name = base == null ? BlockMaxima.FILE : BlockMaxima.NEXT;
      BlockMaxima.write(reader.leaves().get(0).reader(), settings.field, writer.getDirectory(), name);
    }
    reordered = true;
  }

  /** Whether {@link #optimize} has put the documents in another order. */
  public boolean reordered() {
    return reordered;
  }

  /** What {@link #optimize} does at the moment. */
  public String stage() {
    return stage;
  }

  /** The share of the work for the new order that is done. */
  public double ordered() {
    return Math.min(1, divided.sum() / (double) Math.max(1, toDivide));
  }

  /** Waits for so long at most; returns whether the index is merged. */
  public boolean optimized(long milliseconds) throws IOException {
    try {
      if (!isDone(optimizing, milliseconds)) return false;
    } catch (OutOfMemoryError e) {
      throw failure(e);
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
      empty = documents - new LiveCounts(reader, settings.field).documentsWithTerms();
    }
  }

  /** Begins to close the index; call {@link #closed} until it is. What came after the last commit is lost. */
  @Override
  public void close() {
    long seconds = broken || writer.getTragicException() != null ? CLOSE_SECONDS_IF_BROKEN : CLOSE_SECONDS;
    closing = daemon(() -> {
      try (exchange; base) {
        stop(seconds);
        writer.rollback();
        if (base != null && !committed) Files.deleteIfExists(folder.resolve(BlockMaxima.NEXT));
      } catch (IOException | RuntimeException | Error e) {
        // nothing of it is committed
      }
    });
    closing.start();
    closingEnds = System.nanoTime() + TimeUnit.SECONDS.toNanos(2 * seconds);
  }

  /** Waits for so long at most; returns whether the index is closed, or closing it is given up. */
  public boolean closed(long milliseconds) throws InterruptedException {
    closing.join(Math.max(1, milliseconds)); // 0 is without a limit
    return !closing.isAlive() || System.nanoTime() - closingEnds >= 0;
  }

  /** Ends what fills the heap: pyjnius would end the process if it had no room to pass an error on. */
  private void makeRoom() {
    reserve = null;
    for (int tries = 0; tries < CLOSE_SECONDS_IF_BROKEN; tries++) {
      try {
        stop(CLOSE_SECONDS_IF_BROKEN);
        break;
      } catch (OutOfMemoryError e) {
        LockSupport.parkNanos(TimeUnit.SECONDS.toNanos(1)); // a thread that has taken the reserve meets its end, too
      }
    }
    lastReserve = null;
  }

  /** Ends the threads, or gives up waiting for them. */
  private void stop(long seconds) {
    pool.shutdownNow();
    pending.clear();
    try {
      pool.awaitTermination(seconds, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private static double heap() {
    return Runtime.getRuntime().maxMemory();
  }

  private Thread worker(Runnable loop) {
    return daemon(() -> {
      try {
        loop.run();
      } catch (RuntimeException | Error e) {
        died = true;
      }
    });
  }

  private static Thread daemon(Runnable work) {
    Thread thread = new Thread(work);
    thread.setDaemon(true);
    return thread;
  }

  /**
   * Leaves the segment of the block maxima alone, since its order would be lost, until half of it is deleted. {@link
   * #optimize} merges it.
   */
  private static final class SparesOrdered extends TieredMergePolicy {
    private final byte[] id; // null for none
    private final byte[] next; // if an update was killed

    SparesOrdered(Directory directory) throws IOException {
      id = BlockMaxima.segment(directory, BlockMaxima.FILE);
      next = BlockMaxima.segment(directory, BlockMaxima.NEXT);
    }

    @Override
    public MergeSpecification findMerges(MergeTrigger trigger, SegmentInfos segments, MergeContext context)
        throws IOException {
      SegmentInfos others = new SegmentInfos(segments.getIndexCreatedVersionMajor());
      for (SegmentCommitInfo one : segments) {
        boolean ordered = Arrays.equals(one.info.getId(), id) || Arrays.equals(one.info.getId(), next);
        boolean spared = ordered && 2 * context.numDeletedDocs(one) < one.info.maxDoc();
        if (!spared) others.add(one);
      }
      return super.findMerges(trigger, others, context);
    }
  }

  /** Merges in threads. Lucene's writer knows why one failed, and tells who waits for it, so none prints it. */
  private static final class QuietMerges extends ConcurrentMergeScheduler {
    @Override
    protected void handleMergeException(Throwable failure) {
      // see above
    }
  }
}
