package io.compneg.search;

import io.compneg.index.DocumentFilter;
import java.io.IOException;
import java.util.Iterator;
import org.apache.lucene.index.IndexReader;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.util.Bits;

/** The search of {@link ScoringTree.All}: all documents, or those of a filter, have the score 0. */
final class AllDocuments<C extends HitCollector> implements Running<C> {
  private static final int WINDOW = 1 << 12;

  private final DocumentFilter filter; // null for none
  private final C collector;
  private final int toDoc;
  private final Iterator<LeafReaderContext> segments;
  private LeafReaderContext leaf; // null before the first one
  private int next; // the first document of the next window, in the whole index

  AllDocuments(IndexReader reader, int fromDoc, int toDoc, DocumentFilter filter, C collector) {
    this.filter = filter;
    this.collector = collector;
    this.next = fromDoc;
    this.toDoc = toDoc;
    this.segments = reader.leaves().iterator();
  }

  @Override
  public C proceed(long deadline) throws IOException {
    while (next < toDoc) {
      while (leaf == null || leaf.docBase + leaf.reader().maxDoc() <= next) leaf = segments.next();
      int end = Math.min(Math.min(toDoc, leaf.docBase + leaf.reader().maxDoc()), next + WINDOW);
      collect(end);
      collector.endWindow();
      if (System.nanoTime() - deadline >= 0) return null;
    }
    return collector;
  }

  private void collect(int end) throws IOException {
    Bits live = leaf.reader().getLiveDocs();
    Bits allowed = filter == null ? null : filter.in(leaf);
    for (; next < end; next++) {
      int doc = next - leaf.docBase;
      if ((live == null || live.get(doc)) && (allowed == null || allowed.get(doc))) collector.collect(next, 0);
    }
  }
}
