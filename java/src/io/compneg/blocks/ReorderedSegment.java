package io.compneg.blocks;

import java.io.IOException;
import java.util.Arrays;
import java.util.Iterator;
import org.apache.lucene.codecs.FieldsProducer;
import org.apache.lucene.index.CodecReader;
import org.apache.lucene.index.FilterCodecReader;
import org.apache.lucene.index.FilterLeafReader;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.SortingCodecReader;
import org.apache.lucene.index.Terms;
import org.apache.lucene.index.TermsEnum;
import org.apache.lucene.util.BytesRef;

/**
 * A segment in another order, to be written again. Lucene's {@link SortingCodecReader} gives all but the impacts, which
 * are sorted here as numbers: that takes a fraction of the time.
 */
final class ReorderedSegment extends FilterCodecReader {
  /** Of a term that more of the documents have, impacts are put at their places instead of being sorted. */
  private static final int DENSE_SHARE = 32;

  private final CodecReader segment;
  private final NewOrder order;
  private final String field;

  /**
   * Wraps a segment without deleted documents.
   *
   * @param field whose term frequencies are the impacts
   */
  ReorderedSegment(CodecReader segment, NewOrder order, String field) {
    super(SortingCodecReader.wrap(segment, order, null));
    this.segment = segment;
    this.order = order;
    this.field = field;
  }

  @Override
  public FieldsProducer getPostingsReader() {
    FieldsProducer sorted = super.getPostingsReader();
    return new FieldsProducer() {
      @Override
      public Terms terms(String name) throws IOException {
        return name.equals(field) ? impacts(segment.terms(name)) : sorted.terms(name);
      }

      @Override
      public Iterator<String> iterator() {
        return sorted.iterator();
      }

      @Override
      public int size() {
        return sorted.size();
      }

      @Override
      public void checkIntegrity() throws IOException {
        sorted.checkIntegrity();
      }

      @Override
      public void close() {}
    };
  }

  private Terms impacts(Terms terms) {
    if (terms == null) return null;
    return new FilterLeafReader.FilterTerms(terms) {
      @Override
      public TermsEnum iterator() throws IOException {
        Impacts impacts = new Impacts();
        return new FilterLeafReader.FilterTermsEnum(in.iterator()) {
          private PostingsEnum read;

          @Override
          public PostingsEnum postings(PostingsEnum reuse, int flags) throws IOException {
            read = in.postings(read, PostingsEnum.FREQS);
            impacts.read(read, in.docFreq());
            return impacts;
          }
        };
      }
    };
  }

  /** The impacts of one term after the other. */
  private final class Impacts extends PostingsEnum {
    private final int[] dense = new int[segment.maxDoc()]; // by document; 0 for none
    private long[] sparse = new long[segment.maxDoc() / DENSE_SHARE + 1]; // the document above the impact, ascending
    private boolean isDense;
    private int size;
    private int next; // place in the impacts
    private int doc;
    private int impact;

    void read(PostingsEnum postings, int documents) throws IOException {
      isDense = documents >= sparse.length;
      size = documents;
      next = 0;
      doc = -1;
      int count = 0;
      for (int old = postings.nextDoc(); old != NO_MORE_DOCS; old = postings.nextDoc()) {
        if (isDense) {
          dense[order.oldToNew(old)] = postings.freq();
        } else {
          sparse[count++] = (long) order.oldToNew(old) << 32 | postings.freq();
        }
      }
      if (!isDense) Arrays.sort(sparse, 0, count);
    }

    @Override
    public int nextDoc() {
      if (isDense) {
        while (next < dense.length && dense[next] == 0) next++;
        if (next == dense.length) return doc = NO_MORE_DOCS;
        impact = dense[next];
        dense[next] = 0; // for the next term
        return doc = next++;
      }
      if (next == size) return doc = NO_MORE_DOCS;
      impact = (int) sparse[next];
      return doc = (int) (sparse[next++] >> 32);
    }

    @Override
    public int advance(int target) throws IOException {
      return slowAdvance(target);
    }

    @Override
    public int docID() {
      return doc;
    }

    @Override
    public int freq() {
      return impact;
    }

    @Override
    public long cost() {
      return size;
    }

    @Override
    public int nextPosition() {
      return -1;
    }

    @Override
    public int startOffset() {
      return -1;
    }

    @Override
    public int endOffset() {
      return -1;
    }

    @Override
    public BytesRef getPayload() {
      return null;
    }
  }

  @Override
  public CacheHelper getCoreCacheHelper() {
    return null;
  }

  @Override
  public CacheHelper getReaderCacheHelper() {
    return null;
  }
}
