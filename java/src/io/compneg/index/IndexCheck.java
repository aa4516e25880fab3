package io.compneg.index;

import io.compneg.blocks.BlockMaxima;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.apache.lucene.index.CheckIndex;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.LeafReader;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.Term;
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
   * @param pairTerms of how many terms of a document the pairs were indexed; negative for an index without a manifest,
   *     where several documents may have the same id
   * @param pairs the pairs that were indexed instead, one a line
   * @param pairScale of the impacts of pairs
   * @return the number of documents, and of those that have a term; then what {@link #readImpacts} found; then the
   *     number of documents whose id an earlier one has
   * @throws IOException or a RuntimeException: the first damage
   */
  public static long[] check(String folder, String commit, String field, int threads, int pairTerms, byte[] pairs,
      int pairScale) throws IOException {
    String listed = new String(pairs, StandardCharsets.UTF_8);
    Set<String> chosen = listed.isEmpty() ? Set.of() : new LinkedHashSet<>(List.of(listed.split("\n")));
    try (FSDirectory files = FSDirectory.open(Path.of(folder), NoLockFactory.INSTANCE)) { // the folder stays as it is
      try (CheckIndex check = new CheckIndex(files, files.obtainLock(IndexWriter.WRITE_LOCK_NAME))) {
        check.setInfoStream(new PrintStream(OutputStream.nullOutputStream()));
        check.setFailFast(true);
        check.setThreadCount(threads);
        if (!check.checkIndex().clean) throw new IOException("Lucene's check found damage");
      }
      try (DirectoryReader reader = Commits.open(commit)) {
        int repeated = checkIds(reader, pairTerms < 0);
        BlockMaxima maxima = BlockMaxima.open(reader, field);
        if (maxima != null) maxima.check(field);
        long[] found = {reader.numDocs(), new LiveCounts(reader, field).documentsWithTerms(), 0, 0, repeated};
        for (LeafReaderContext leaf : reader.leaves()) {
          int[][] read = readImpacts(leaf.reader(), field, chosen, found);
          if (chosen.isEmpty() && pairTerms >= 0) checkPairs(read, pairTerms, pairScale);
          for (String pair : chosen) checkPair(leaf.reader(), field, pair, pairScale);
        }
        return found;
      }
    }
  }

  /**
   * Raises to what a segment holds: 1 where there is a complement (at 2), and its largest impact but of pairs (at 3).
   *
   * @return how many terms that are neither complements nor pairs each document has, and how many pairs; then the two
   *     largest impacts of these terms, and the largest of a pair
   */
  private static int[][] readImpacts(LeafReader segment, String field, Set<String> chosen, long[] found)
      throws IOException {
    int[][] read = new int[5][segment.maxDoc()];
    Terms terms = segment.terms(field);
    if (terms == null) return read;
    TermsEnum each = terms.iterator();
    PostingsEnum postings = null;
    for (BytesRef term = each.next(); term != null; term = each.next()) {
      String text = term.utf8ToString();
      boolean isComplement = text.startsWith("¬") && text.length() > 1;
      if (isComplement) found[2] = 1;
      boolean isPair = !isComplement && ImpactVector.isPseudoTerm(text);
      if (isPair && !chosen.isEmpty() && !chosen.contains(text)) {
        throw new IOException("it has the pair '" + text + "', which the manifest does not name");
      }
      postings = each.postings(postings, PostingsEnum.FREQS);
      for (int doc = postings.nextDoc(); doc != DocIdSetIterator.NO_MORE_DOCS; doc = postings.nextDoc()) {
        int impact = postings.freq();
        if (!isPair) found[3] = Math.max(found[3], impact);
        if (isComplement) continue;
        read[isPair ? 1 : 0][doc]++;
        if (isPair) {
          read[4][doc] = Math.max(read[4][doc], impact);
        } else {
          read[3][doc] = Math.max(read[3][doc], Math.min(read[2][doc], impact));
          read[2][doc] = Math.max(read[2][doc], impact);
        }
      }
    }
    return read;
  }

  private static void checkPairs(int[][] read, int pairTerms, int pairScale) throws IOException {
    for (int doc = 0; doc < read[0].length; doc++) {
      long paired = Math.min(read[0][doc], pairTerms), expected = paired * (paired - 1) / 2;
      if (read[1][doc] != expected) {
        throw new IOException("a document has " + read[1][doc] + " pairs, and it should have " + expected
            + " by the manifest's pair_terms: " + pairTerms);
      }
      int impact = expected == 0 ? 0 : Pairs.impact(read[2][doc], read[3][doc], pairScale);
      if (read[4][doc] != impact) {
        throw new IOException("a document's largest pair has the impact " + read[4][doc] + ", and it should have "
            + impact + " by the manifest's pair_scale: " + pairScale);
      }
    }
  }

  /** Checks the documents and the impacts of a chosen pair. One that can be read as several pairs is not checked. */
  private static void checkPair(LeafReader segment, String field, String pair, int scale) throws IOException {
    int sign = pair.indexOf(Pairs.SIGN, 1);
    if (sign != pair.lastIndexOf(Pairs.SIGN, pair.length() - 2)) return;
    PostingsEnum[] terms = new PostingsEnum[2];
    terms[0] = segment.postings(new Term(field, pair.substring(0, sign)), PostingsEnum.FREQS);
    terms[1] = segment.postings(new Term(field, pair.substring(sign + 1)), PostingsEnum.FREQS);
    PostingsEnum found = segment.postings(new Term(field, pair), PostingsEnum.FREQS);
    int doc = first(terms[0]), other = first(terms[1]), stored = first(found);
    while (Math.max(doc, other) != DocIdSetIterator.NO_MORE_DOCS) {
      if (doc < other) {
        doc = terms[0].advance(other);
      } else if (other < doc) {
        other = terms[1].advance(doc);
      } else {
        if (stored != doc || found.freq() != Pairs.impact(terms[0].freq(), terms[1].freq(), scale)) break;
        doc = terms[0].nextDoc();
        other = terms[1].nextDoc();
        stored = found.nextDoc();
      }
    }
    if (Math.max(doc, other) != DocIdSetIterator.NO_MORE_DOCS || stored != DocIdSetIterator.NO_MORE_DOCS) {
      throw new IOException("the pair '" + pair + "' is not in the documents of both its terms, with their impacts");
    }
  }

  private static int first(PostingsEnum postings) throws IOException {
    return postings == null ? DocIdSetIterator.NO_MORE_DOCS : postings.nextDoc();
  }

  private static int checkIds(DirectoryReader reader, boolean mayRepeat) throws IOException {
    ExternalIds externalIds = new ExternalIds(reader);
    int[] docs = new int[BATCH];
    int repeated = 0;
    for (LeafReaderContext leaf : reader.leaves()) {
      Bits live = leaf.reader().getLiveDocs();
      int count = 0;
      for (int doc = 0; doc < leaf.reader().maxDoc(); doc++) {
        if (live == null || live.get(doc)) docs[count++] = leaf.docBase + doc;
        if (count == BATCH || doc == leaf.reader().maxDoc() - 1) {
          repeated += checkIds(reader, mayRepeat, externalIds, Arrays.copyOf(docs, count));
          count = 0;
        }
      }
    }
    return repeated;
  }

  private static int checkIds(DirectoryReader reader, boolean mayRepeat, ExternalIds externalIds, int[] docs)
      throws IOException {
    BytesRef[] ids = externalIds.of(docs);
    int[] found = ExternalIds.find(reader, ids);
    int repeated = 0;
    for (int i = 0; i < docs.length; i++) {
      if (found[i] == docs[i]) continue;
      repeated++;
      if (found[i] >= 0 && mayRepeat) continue;
      String fault = found[i] < 0 ? "cannot be looked up" : "is that of two documents";
      throw new IOException("the document id '" + ids[i].utf8ToString() + "' " + fault);
    }
    return repeated;
  }
}
