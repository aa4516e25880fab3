package io.compneg.index;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.tokenattributes.BytesTermAttribute;
import org.apache.lucene.analysis.tokenattributes.TermFrequencyAttribute;
import org.apache.lucene.codecs.Codec;
import org.apache.lucene.codecs.FieldsConsumer;
import org.apache.lucene.codecs.FieldsProducer;
import org.apache.lucene.codecs.FilterCodec;
import org.apache.lucene.codecs.NormsProducer;
import org.apache.lucene.codecs.PostingsFormat;
import org.apache.lucene.index.BaseTermsEnum;
import org.apache.lucene.index.Fields;
import org.apache.lucene.index.FilterLeafReader.FilterFields;
import org.apache.lucene.index.FilterLeafReader.FilterTerms;
import org.apache.lucene.index.ImpactsEnum;
import org.apache.lucene.index.MergeState;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.SegmentReadState;
import org.apache.lucene.index.SegmentWriteState;
import org.apache.lucene.index.Terms;
import org.apache.lucene.index.TermsEnum;
import org.apache.lucene.util.BytesRef;
import org.apache.lucene.util.NumericUtils;

/**
 * Inverts the vectors of all documents of a new segment at once.
 *
 * <p>Lucene inverts document by document: each term is hashed and appended to a list of its own, far from those of the
 * terms before. Here a document has a single token, the number under which its vector waits; its frequency is the sum
 * of the impacts, so the norm is that of the vector. When the segment is written, the vectors of its documents are
 * sorted by term with two passes over flat arrays, and take the place of these tokens. For the same documents in a
 * segment the files are those of Lucene's own inverter.
 */
final class ImpactInverter {
  /** The vector of a document, and what it was counted with. */
  private record Waiting(Vocabulary.Entry[] terms, int[] impacts, long bytes) {}

  /** What a vector takes beside its terms: three objects, and its place in the map. */
  private static final long VECTOR_BYTES = 120;

  /** A reference and an impact, and while they are inverted a number and a posting. */
  private static final long POSTING_BYTES = 20;

  /** A term beside its text, which stays in memory as long as a vector with it, and while it is sorted. */
  private static final long TERM_BYTES = 150;

  /** Vectors wait in so many times the memory that Lucene may use beside them, so that segments are not small. */
  private static final int MEMORY = 3;

  /** But in no more than this share of the heap: while a segment is written, others wait already. */
  private static final int HEAP_SHARE = 8;

  private final String field;
  private final long mostBytes;
  private final Map<Long, Waiting> vectors = new ConcurrentHashMap<>();
  private final AtomicLong numbered = new AtomicLong(); // vectors
  private final AtomicLong bytes = new AtomicLong();
  private volatile int inversions;

  /**
   * Inverts the vectors of a field.
   *
   * @param bufferMb what Lucene may use for all else before it writes a segment
   */
  ImpactInverter(String field, double bufferMb) {
    this.field = field;
    this.mostBytes = (long) Math.min(MEMORY * bufferMb * (1 << 20), Runtime.getRuntime().maxMemory() / HEAP_SHARE);
  }

  /** Whether so many vectors wait that a segment should be written. */
  boolean isFull() {
    return bytes.get() > mostBytes;
  }

  /** What a document is indexed with in place of its vector, which must have a term. */
  Placeholder add(ImpactVector vector) {
    Vocabulary.Entry[] terms = vector.terms();
    long size = VECTOR_BYTES + POSTING_BYTES * terms.length;
    int next = inversions + 1;
    for (Vocabulary.Entry entry : terms) {
      if (entry.counted == next) continue; // with another vector that waits
      entry.counted = next;
      size += TERM_BYTES + 2L * entry.term.length;
    }
    Placeholder placeholder = new Placeholder(numbered.getAndIncrement(), Math.toIntExact(vector.total()));
    vectors.put(placeholder.number, new Waiting(terms, vector.impacts(), size));
    bytes.addAndGet(size);
    return placeholder;
  }

  private Waiting take(long number) {
    Waiting waiting = vectors.remove(number);
    bytes.addAndGet(-waiting.bytes);
    return waiting;
  }

  /** One token, which stands for the vector with a number. */
  static final class Placeholder extends TokenStream {
    private final BytesTermAttribute term = addAttribute(BytesTermAttribute.class);
    private final TermFrequencyAttribute frequency = addAttribute(TermFrequencyAttribute.class);
    private final long number;
    private final int total;
    private boolean given;

    private Placeholder(long number, int total) {
      this.number = number;
      this.total = total;
    }

    @Override
    public boolean incrementToken() {
      if (given) return false;
      given = true;
      clearAttributes();
      byte[] bytes = new byte[Long.BYTES];
      NumericUtils.longToSortableBytes(number, bytes, 0);
      term.setBytesRef(new BytesRef(bytes));
      frequency.setTermFrequency(total);
      return true;
    }
  }

  /** Lucene's own codec by name and on the disk, which writes the vectors in place of their numbers. */
  Codec codec() {
    Codec standard = Codec.getDefault();
    return new FilterCodec(standard.getName(), standard) {
      @Override
      public PostingsFormat postingsFormat() {
        return new Inverting(standard.postingsFormat());
      }
    };
  }

  private final class Inverting extends PostingsFormat {
    private final PostingsFormat standard;

    Inverting(PostingsFormat standard) {
      super(standard.getName());
      this.standard = standard;
    }

    @Override
    public FieldsConsumer fieldsConsumer(SegmentWriteState state) throws IOException {
      FieldsConsumer consumer = standard.fieldsConsumer(state);
      return new FieldsConsumer() {
        @Override
        public void write(Fields fields, NormsProducer norms) throws IOException {
          Terms numbers = fields.terms(field);
          if (numbers == null) {
            consumer.write(fields, norms);
            return;
          }
          Terms inverted = new Inverted(numbers, state.segmentInfo.maxDoc());
          consumer.write(new FilterFields(fields) {
            @Override
            public Terms terms(String name) throws IOException {
              return name.equals(field) ? inverted : super.terms(name);
            }
          }, norms);
        }

        @Override
        public void merge(MergeState merged, NormsProducer norms) throws IOException {
          consumer.merge(merged, norms); // segments that are written already
        }

        @Override
        public void close() throws IOException {
          consumer.close();
        }
      };
    }

    @Override
    public FieldsProducer fieldsProducer(SegmentReadState state) throws IOException {
      return standard.fieldsProducer(state);
    }
  }

  /** The terms of a segment, with their postings. */
  private final class Inverted extends FilterTerms {
    private final List<BytesRef> terms = new ArrayList<>(); // by their numbers here
    private final Integer[] order; // of these numbers, by the bytes of the terms
    private final int[] ends; // of the postings of each term
    private final long[] postings; // the document above the impact

    Inverted(Terms numbers, int documents) throws IOException {
      super(numbers);
      Waiting[] byDocument = new Waiting[documents];
      TermsEnum found = numbers.iterator();
      PostingsEnum docs = null;
      long total = 0;
      for (BytesRef number = found.next(); number != null; number = found.next()) {
        docs = found.postings(docs, PostingsEnum.NONE);
        Waiting waiting = take(NumericUtils.sortableBytesToLong(number.bytes, number.offset));
        byDocument[docs.nextDoc()] = waiting;
        total += waiting.terms.length;
      }
      int[] termNumbers = new int[Math.toIntExact(total)];
      int[] counts = numberTerms(byDocument, termNumbers);
      order = new Integer[terms.size()];
      Arrays.setAll(order, i -> i);
      Arrays.sort(order, (a, b) -> terms.get(a).compareTo(terms.get(b)));
      ends = new int[order.length];
      int end = 0;
      for (int number : order) {
        ends[number] = end; // moves to its end below
        end += counts[number];
      }
      postings = new long[termNumbers.length];
      int at = 0;
      for (int doc = 0; doc < documents; doc++) {
        if (byDocument[doc] == null) continue;
        for (int impact : byDocument[doc].impacts) postings[ends[termNumbers[at++]]++] = (long) doc << 32 | impact;
      }
    }

    /** Numbers the terms, and writes the number of each term of each document; returns how often each occurs. */
    private int[] numberTerms(Waiting[] byDocument, int[] termNumbers) {
      synchronized (ImpactInverter.this) { // an entry has room for the number of one inversion
        int inversion = ++inversions;
        Map<BytesRef, Integer> numbers = new HashMap<>(); // each thread has entries of its own for the same terms
        int[] counts = new int[1 << 12];
        int at = 0;
        for (Waiting waiting : byDocument) {
          if (waiting == null) continue;
          for (Vocabulary.Entry entry : waiting.terms) {
            if (entry.inversion != inversion) {
              entry.inversion = inversion;
              Integer number = numbers.putIfAbsent(entry.term, terms.size());
              entry.number = number == null ? terms.size() : number;
              if (number == null) terms.add(entry.term);
              if (terms.size() > counts.length) counts = Arrays.copyOf(counts, 2 * counts.length);
            }
            counts[entry.number]++;
            termNumbers[at++] = entry.number;
          }
        }
        return counts;
      }
    }

    @Override
    public long size() {
      return order.length;
    }

    @Override
    public TermsEnum iterator() {
      return new SortedTerms(this);
    }
  }

  private static final class SortedTerms extends BaseTermsEnum {
    private final Inverted inverted;
    private int place = -1; // in the order
    private int start; // of the postings
    private int end;

    SortedTerms(Inverted inverted) {
      this.inverted = inverted;
    }

    @Override
    public BytesRef next() {
      if (++place == inverted.order.length) return null;
      start = end;
      end = inverted.ends[inverted.order[place]];
      return term();
    }

    @Override
    public BytesRef term() {
      return inverted.terms.get(inverted.order[place]);
    }

    @Override
    public int docFreq() {
      return end - start;
    }

    @Override
    public PostingsEnum postings(PostingsEnum reuse, int flags) {
      SortedPostings postings = reuse instanceof SortedPostings own ? own : new SortedPostings();
      postings.reset(inverted.postings, start, end);
      return postings;
    }

    @Override
    public long totalTermFreq() {
      throw new UnsupportedOperationException(); // what writes a segment counts itself
    }

    @Override
    public ImpactsEnum impacts(int flags) {
      throw new UnsupportedOperationException();
    }

    @Override
    public SeekStatus seekCeil(BytesRef text) {
      throw new UnsupportedOperationException();
    }

    @Override
    public void seekExact(long ord) {
      throw new UnsupportedOperationException();
    }

    @Override
    public long ord() {
      throw new UnsupportedOperationException();
    }
  }

  private static final class SortedPostings extends PostingsEnum {
    private long[] postings;
    private int start;
    private int end;
    private int at; // of the current one
    private int doc;

    void reset(long[] postings, int start, int end) {
      this.postings = postings;
      this.start = start;
      this.end = end;
      at = start - 1;
      doc = -1;
    }

    @Override
    public int nextDoc() {
      return doc = ++at < end ? (int) (postings[at] >>> 32) : NO_MORE_DOCS;
    }

    @Override
    public int docID() {
      return doc;
    }

    @Override
    public int freq() {
      return (int) postings[at];
    }

    @Override
    public long cost() {
      return end - start;
    }

    @Override
    public int advance(int target) throws IOException {
      return slowAdvance(target);
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
}
