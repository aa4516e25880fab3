package io.compneg.index;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.lucene.index.IndexReader;
import org.apache.lucene.index.LeafReader;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.NumericDocValues;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.util.Bits;

/**
 * The statistics of an index without its deleted documents, which Lucene's own statistics count until they are merged
 * away. So a query is weighed as in a new index of the documents that are left. Safe for use by several threads.
 */
public final class LiveCounts {
  /** Looking a document up in a list of postings takes as long as reading so many of them. */
  private static final int LOOK_UP = 16;

  private static final int MOST_KEPT = 1 << 16;

  private final String field;
  private final IndexReader reader;
  private final int[][] deleted; // of each segment, ascending
  private final Map<String, Integer> kept = new ConcurrentHashMap<>(); // frequencies of terms

  public LiveCounts(IndexReader reader, String field) {
    this.reader = reader;
    this.field = field;
    this.deleted = reader.leaves().stream().map(leaf -> deleted(leaf.reader())).toArray(int[][] ::new);
  }

  private static int[] deleted(LeafReader segment) {
    int[] deleted = new int[segment.numDeletedDocs()];
    Bits live = segment.getLiveDocs();
    int count = 0;
    for (int doc = 0; count < deleted.length; doc++) {
      if (!live.get(doc)) deleted[count++] = doc;
    }
    return deleted;
  }

  /** How many documents have a term of the field. */
  public int documentsWith(String term) throws IOException {
    if (!reader.hasDeletions()) return reader.docFreq(new Term(field, term));
    Integer known = kept.get(term);
    if (known != null) return known;
    int count = 0;
    List<LeafReaderContext> leaves = reader.leaves();
    for (int i = 0; i < deleted.length; i++)
      count += documentsWith(new Term(field, term), leaves.get(i).reader(), deleted[i]);
    if (kept.size() >= MOST_KEPT) kept.clear();
    kept.put(term, count);
    return count;
  }

  private static int documentsWith(Term term, LeafReader segment, int[] deleted) throws IOException {
    int frequency = segment.docFreq(term);
    if (frequency == 0 || deleted.length == 0) return frequency;
    PostingsEnum postings = segment.postings(term, PostingsEnum.NONE);
    boolean reads = frequency < (long) LOOK_UP * deleted.length;
    for (int doc = postings.nextDoc(), i = 0; doc != DocIdSetIterator.NO_MORE_DOCS && i < deleted.length;) {
      if (doc == deleted[i]) frequency--;
      if (doc >= deleted[i]) {
        i++;
      } else {
        doc = reads ? postings.nextDoc() : postings.advance(deleted[i]);
      }
    }
    return frequency;
  }

  /** How many documents have a term at all. The norm of others is 0. */
  public int documentsWithTerms() throws IOException {
    int count = reader.getDocCount(field);
    List<LeafReaderContext> leaves = reader.leaves();
    for (int i = 0; i < deleted.length; i++) {
      NumericDocValues norms = deleted[i].length == 0 ? null : leaves.get(i).reader().getNormValues(field);
      if (norms == null) continue;
      for (int doc : deleted[i]) {
        if (norms.advanceExact(doc) && norms.longValue() != 0) count--;
      }
    }
    return count;
  }
}
