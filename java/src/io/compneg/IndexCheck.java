package io.compneg;

import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.file.Path;
import java.util.Arrays;
import org.apache.lucene.index.CheckIndex;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.LeafReader;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.Terms;
import org.apache.lucene.index.TermsEnum;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.store.FSDirectory;
import org.apache.lucene.store.NoLockFactory;
import org.apache.lucene.util.Bits;
import org.apache.lucene.util.BytesRef;

/** Reads an index from end to end, for Python: a search reads little of it, and checks no checksum. */
public final class IndexCheck {
  private static final int BATCH = 1 << 12;

  private IndexCheck() {}

  /**
   * Runs Lucene's own check of its files, looks each document up by its id, and reads all impacts and block maxima.
   *
   * @param commit of the folder, see {@link Commits#open}
   * @return the number of documents, and of those that have a term; then what {@link #readImpacts} found
   * @throws IOException or a RuntimeException: the first damage
   */
  public static long[] check(String folder, String commit, String field, int threads) throws IOException {
    try (FSDirectory files = FSDirectory.open(Path.of(folder), NoLockFactory.INSTANCE)) { // the folder stays as it is
      try (CheckIndex check = new CheckIndex(files, files.obtainLock(IndexWriter.WRITE_LOCK_NAME))) {
        check.setInfoStream(new PrintStream(OutputStream.nullOutputStream()));
        check.setFailFast(true);
        check.setThreadCount(threads);
        if (!check.checkIndex().clean) throw new IOException("Lucene's check found damage");
      }
      try (DirectoryReader reader = Commits.open(commit)) {
        checkIds(reader);
        BlockMaxima maxima = BlockMaxima.open(reader, field);
        if (maxima != null) maxima.check(field);
        long[] found = {reader.numDocs(), new LiveCounts(reader, field).documentsWithTerms(), 0, 0, 0, 0};
        for (LeafReaderContext leaf : reader.leaves()) readImpacts(leaf.reader(), field, found);
        return found;
      }
    }
  }

  /**
   * Raises to what a segment holds: 1 where there is a complement (at 2), the most terms of a document that are neither
   * complements nor pairs (at 3), its most pairs (at 4), and its largest impact (at 5).
   */
  private static void readImpacts(LeafReader segment, String field, long[] found) throws IOException {
    Terms terms = segment.terms(field);
    if (terms == null) return;
    int[][] counts = new int[2][segment.maxDoc()]; // of terms, and of pairs
    TermsEnum each = terms.iterator();
    PostingsEnum postings = null;
    for (BytesRef term = each.next(); term != null; term = each.next()) {
      String text = term.utf8ToString();
      boolean isComplement = text.startsWith("¬") && text.length() > 1;
      if (isComplement) found[2] = 1;
      int[] counted = counts[ImpactVector.isPseudoTerm(text) ? 1 : 0];
      postings = each.postings(postings, PostingsEnum.FREQS);
      while (postings.nextDoc() != DocIdSetIterator.NO_MORE_DOCS) {
        if (!isComplement) counted[postings.docID()]++;
        found[5] = Math.max(found[5], postings.freq());
      }
    }
    for (int i = 0; i < 2; i++) found[3 + i] = Math.max(found[3 + i], Arrays.stream(counts[i]).max().orElse(0));
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
