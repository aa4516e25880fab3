package io.compneg;

import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.file.Path;
import java.util.Arrays;
import org.apache.lucene.index.CheckIndex;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.store.FSDirectory;
import org.apache.lucene.store.NoLockFactory;
import org.apache.lucene.util.Bits;
import org.apache.lucene.util.BytesRef;

/** Reads an index from end to end, for Python: a search reads little of it, and checks no checksum. */
public final class IndexCheck {
  private static final int BATCH = 1 << 12;

  private IndexCheck() {}

  /**
   * Runs Lucene's own check of all files, then looks each document up by its id.
   *
   * @return the number of documents, and of those that have a term
   * @throws IOException or a RuntimeException: the first damage
   */
  public static long[] check(String folder, String field, int threads) throws IOException {
    try (FSDirectory files = FSDirectory.open(Path.of(folder), NoLockFactory.INSTANCE)) { // the folder stays as it is
      try (CheckIndex check = new CheckIndex(files, files.obtainLock(IndexWriter.WRITE_LOCK_NAME))) {
        check.setInfoStream(new PrintStream(OutputStream.nullOutputStream()));
        check.setFailFast(true);
        check.setThreadCount(threads);
        if (!check.checkIndex().clean) throw new IOException("Lucene's check found damage");
      }
      try (DirectoryReader reader = DirectoryReader.open(files)) {
        checkIds(reader);
        return new long[] {reader.numDocs(), reader.getDocCount(field)};
      }
    }
  }

  private static void checkIds(DirectoryReader reader) throws IOException {
    ExternalIds externalIds = new ExternalIds(reader);
    int[] docs = new int[BATCH];
    for (LeafReaderContext leaf : reader.leaves()) {
      Bits live = leaf.reader().getLiveDocs();
      int count = 0;
      for (int doc = 0; doc < leaf.reader().maxDoc(); doc++) {
        if (live == null || live.get(doc)) docs[count++] = leaf.docBase + doc;
        if (count == BATCH || doc == leaf.reader().maxDoc() - 1) {
          checkIds(reader, externalIds, Arrays.copyOf(docs, count));
          count = 0;
        }
      }
    }
  }

  private static void checkIds(DirectoryReader reader, ExternalIds externalIds, int[] docs) throws IOException {
    BytesRef[] ids = externalIds.of(docs);
    int[] found = ExternalIds.find(reader, ids);
    for (int i = 0; i < docs.length; i++) {
      if (found[i] == docs[i]) continue;
      String fault = found[i] < 0 ? "cannot be looked up" : "is that of two documents";
      throw new IOException("the document id '" + ids[i].utf8ToString() + "' " + fault);
    }
  }
}
