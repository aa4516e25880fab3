package io.compneg;

import com.fasterxml.jackson.databind.JsonNode;
import io.anserini.search.similarity.ImpactSimilarity;
import java.io.Closeable;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.lucene.analysis.core.WhitespaceAnalyzer;
import org.apache.lucene.document.BinaryDocValuesField;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.FieldType;
import org.apache.lucene.document.StoredField;
import org.apache.lucene.document.StringField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexOptions;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.MultiTerms;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.TermsEnum;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.store.FSDirectory;
import org.apache.lucene.util.BytesRef;

/**
 * Writes an impact index with Anserini's fields: {@code id} (indexed, stored, doc values), {@code contents}
 * (impacts as term frequencies, no norms to speak of), and {@code raw} (stored source) for documents that
 * carry it.
 */
public final class ImpactWriter implements Closeable {
  private static final FieldType IMPACTS = new FieldType();

  static {
    IMPACTS.setTokenized(true);
    IMPACTS.setIndexOptions(IndexOptions.DOCS_AND_FREQS);
    IMPACTS.freeze();
  }

  private final IndexWriter writer;
  private final String field;
  private final ExecutorService pool;
  private final int threads;
  private boolean finished;

  /** Starts an index in an empty folder. */
  public ImpactWriter(String folder, String field, int threads, double memoryBufferMb) throws IOException {
    IndexWriterConfig config = new IndexWriterConfig(new WhitespaceAnalyzer());
    config.setSimilarity(new ImpactSimilarity());
    config.setOpenMode(IndexWriterConfig.OpenMode.CREATE);
    config.setRAMBufferSizeMB(memoryBufferMb);
    config.setUseCompoundFile(false);
    this.writer = new IndexWriter(FSDirectory.open(Path.of(folder)), config);
    this.field = field;
    this.threads = threads;
    this.pool = Executors.newFixedThreadPool(threads);
  }

  /**
   * Adds documents, one JSON line each: {@code {"id", "vector": {term: positive int}, "raw"?}}, and returns
   * when all are in.
   */
  public void add(byte[] documents) throws IOException {
    String[] lines = new String(documents, StandardCharsets.UTF_8).split("\n");
    List<Future<?>> pending = new ArrayList<>();
    int share = (lines.length + threads - 1) / threads;
    for (int start = 0; start < lines.length; start += share) {
      int first = start;
      int last = Math.min(lines.length, start + share);
      pending.add(
          pool.submit(
              () -> {
                for (int i = first; i < last; i++) writer.addDocument(document(ScoringTree.JSON.readTree(lines[i])));
                return null;
              }));
    }
    try {
      for (Future<?> task : pending) task.get();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted", e);
    } catch (ExecutionException e) {
      if (e.getCause() instanceof IOException cause) throw cause;
      throw new IOException(e.getCause().getMessage(), e.getCause());
    }
  }

  private Document document(JsonNode source) {
    String id = source.get("id").textValue();
    Document document = new Document();
    document.add(new StringField(ExternalIds.FIELD, id, Field.Store.YES));
    document.add(new BinaryDocValuesField(ExternalIds.FIELD, new BytesRef(id))); // breaks ties by docid
    if (source.has("raw")) document.add(new StoredField("raw", source.get("raw").textValue()));
    document.add(new Field(field, new ImpactTokenStream(source.get("vector")), IMPACTS));
    return document;
  }

  /**
   * Makes the index durable.
   *
   * @param optimize merge into one segment first
   */
  public void finish(boolean optimize) throws IOException {
    if (optimize) writer.forceMerge(1);
    writer.commit();
    finished = true;
  }

  /**
   * An id that more than one document has, or null. To be asked after {@link #finish}; the ids are never all
   * in memory.
   */
  public String duplicateId() throws IOException {
    try (DirectoryReader reader = DirectoryReader.open(writer)) {
      var terms = MultiTerms.getTerms(reader, ExternalIds.FIELD);
      if (terms == null) return null;
      PostingsEnum postings = null;
      TermsEnum ids = terms.iterator();
      for (BytesRef id = ids.next(); id != null; id = ids.next()) {
        postings = ids.postings(postings, PostingsEnum.NONE);
        postings.nextDoc();
        if (postings.nextDoc() != DocIdSetIterator.NO_MORE_DOCS) return id.utf8ToString();
      }
      return null;
    }
  }

  /** Closes the index; what was not finished is not written. */
  @Override
  public void close() throws IOException {
    pool.shutdown();
    try {
      pool.awaitTermination(1, TimeUnit.MINUTES);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    if (finished) {
      writer.close();
    } else {
      writer.rollback();
    }
  }
}
