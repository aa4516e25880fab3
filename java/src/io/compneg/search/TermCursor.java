package io.compneg.search;

import io.compneg.blocks.Accumulators;
import io.compneg.blocks.BlockMaxima;
import io.compneg.blocks.Contribution;
import io.compneg.blocks.DensePostings;
import io.compneg.blocks.DocumentWindow;
import io.compneg.blocks.ShortPostings;
import io.compneg.blocks.TermMaxima;
import io.compneg.blocks.TermPostings;
import io.compneg.search.QueryPlan.QueryTerm;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.lucene.index.IndexReader;
import org.apache.lucene.index.LeafReader;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.Term;
import org.apache.lucene.index.Terms;
import org.apache.lucene.index.TermsEnum;
import org.apache.lucene.util.BytesRef;

/** A term of the query in one segment: its postings, read forward only, and its maximum impact in each window. */
final class TermCursor {
  /** Of a term that a larger share of documents has, the impacts of all documents are kept and added by vectors. */
  private static final double DENSE = 1 / 16.0;

  /** So many terms of a segment fit in memory, or none is kept like this. */
  private static final int LEAST_DENSE = 256;

  /** The most bytes of them that a query may hold in a segment: several queries are searched at once. */
  private static final long MOST_DENSE_BYTES = RecentTerms.MOST_BYTES / 4;

  final Contribution[] contributions;

  final TermPostings postings;

  /** The share of the segment's documents that have the term. */
  final double density;

  final boolean readsFast; // by vector instructions

  /** See {@link TermPostings}. */
  final double readingCost;

  final double lookUpCost;

  /** Whether it may raise a score. */
  final boolean positive;

  /** Null where Lucene's own are used, and for a term that only lowers scores: 0 is its bound. */
  final TermMaxima blockMaxima;

  private final BlockMaxImpacts maxImpacts; // those of Lucene; null for few postings
  private int windowMaxImpact;

  private TermCursor(QueryTerm term, TermPostings postings, int documents, LeafReader segment, TermMaxima maxima,
      BlockMaxImpacts maxImpacts) {
    contributions = term.contributions();
    positive = term.positive();
    this.postings = postings;
    density = (double) documents / segment.maxDoc();
    readingCost = postings.readingCost(density, contributions);
    readsFast = postings instanceof DensePostings && isLinear(term);
    lookUpCost = postings.lookUpCost();
    blockMaxima = positive ? maxima : null;
    this.maxImpacts = maxImpacts;
  }

  /**
   * Opens the terms of a plan that a segment has.
   *
   * @param maxima the block maxima of the segment; null for those of Lucene
   * @param bounded whether all terms need block maxima; else those have them that the file has
   */
  static List<TermCursor> openAll(QueryPlan plan, String field, LeafReader segment, BlockMaxima maxima, boolean bounded)
      throws IOException {
    Opening opening = new Opening(field, segment, maxima, bounded);
    List<TermCursor> cursors = new ArrayList<>();
    for (QueryTerm term : plan.terms) {
      TermCursor cursor = opening.open(term);
      if (cursor != null) cursors.add(cursor);
    }
    return cursors;
  }

  /** The opening of some terms in a segment. What was read of them last is taken from memory. */
  private static final class Opening {
    private final String field;
    private final LeafReader segment;
    private final BlockMaxima maxima;
    private final boolean bounded;
    private final IndexReader.CacheHelper cache; // null for a segment whose terms are not kept
    private TermsEnum terms; // null before it is needed
    private PostingsEnum few;
    private long denseBytes;

    Opening(String field, LeafReader segment, BlockMaxima maxima, boolean bounded) {
      this.field = field;
      this.segment = segment;
      this.maxima = maxima;
      this.bounded = bounded;
      cache = segment.getCoreCacheHelper();
    }

    /** Opens a term; null when the segment does not have it. */
    TermCursor open(QueryTerm term) throws IOException {
      Term indexed = new Term(field, term.text());
      RecentTerms.Entry read = cache == null ? null : RecentTerms.get(cache, indexed);
      boolean needed = maxima != null && (read == null || read.maxima() == null) && needsMaxima(term, indexed.bytes());
      if (read == null || needed && read.documents() > 0) {
        read = read(indexed, needed);
        if (cache != null) RecentTerms.put(cache, indexed, read);
      }
      if (read.documents() == 0) return null;
      TermMaxima own = maxima == null ? null : read.maxima();
      BlockMaxImpacts impacts = null;
      TermPostings postings;
      if (usesDense(term, read)) {
        denseBytes += read.dense().length;
        postings = new DensePostings(read.dense());
        if (own == null && term.positive()) {
          terms().seekExact(indexed.bytes(), read.place());
          impacts = new BlockMaxImpacts(terms.impacts(PostingsEnum.FREQS));
        }
      } else if (own != null && own.hasPostings()) {
        postings = maxima.postings(indexed.bytes(), own);
      } else if (read.docs() != null) {
        postings = new ShortPostings(read.docs(), read.impacts());
      } else {
        terms().seekExact(indexed.bytes(), read.place());
        if (own == null && term.positive()) impacts = new BlockMaxImpacts(terms.impacts(PostingsEnum.FREQS));
        postings = LuceneLine.current().postings(terms.postings(null, PostingsEnum.FREQS), segment, indexed);
      }
      return new TermCursor(term, postings, read.documents(), segment, own, impacts);
    }

    /** Whether the impacts of all documents are used. Few powers are found faster by postings. */
    private boolean usesDense(QueryTerm term, RecentTerms.Entry read) {
      if (read.dense() == null || denseBytes + read.dense().length > MOST_DENSE_BYTES) return false;
      return isLinear(term) || read.documents() > segment.maxDoc() / 2;
    }

    private boolean needsMaxima(QueryTerm term, BytesRef text) {
      return maxima.hasPostings(text) || term.positive() && (bounded || maxima.has(text));
    }

    private RecentTerms.Entry read(Term indexed, boolean withMaxima) throws IOException {
      if (!terms().seekExact(indexed.bytes())) return RecentTerms.Entry.NONE;
      int documents = terms.docFreq();
      TermMaxima own = withMaxima ? maxima.of(terms) : null;
      if (documents > ShortPostings.MOST || own != null && own.hasPostings()) {
        byte[] dense = null;
        if (isDense(documents)) dense = DensePostings.read(terms.postings(null, PostingsEnum.FREQS), segment.maxDoc());
        return new RecentTerms.Entry(documents, terms.termState(), null, null, dense, own);
      }
      few = terms.postings(few, PostingsEnum.FREQS);
      return RecentTerms.Entry.of(few, documents, own);
    }

    private boolean isDense(int documents) {
      return cache != null && documents > segment.maxDoc() * DENSE
          && segment.maxDoc() <= RecentTerms.MOST_BYTES / LEAST_DENSE;
    }

    private TermsEnum terms() throws IOException {
      if (terms == null) terms = Terms.getTerms(segment, field).iterator();
      return terms;
    }
  }

  private static boolean isLinear(QueryTerm term) {
    return Arrays.stream(term.contributions()).allMatch(Contribution::isLinear);
  }

  /** Whether it adds to one of the accumulators {@code [from, to)}. */
  boolean contributesTo(int from, int to) {
    for (Contribution contribution : contributions) {
      if (from <= contribution.accumulator && contribution.accumulator < to) return true;
    }
    return false;
  }

  /** No impact of the term in the window that was entered last is larger; 0 when it has none there. */
  int windowMaxImpact() {
    return windowMaxImpact;
  }

  /** Enters a window, which without block maxima is one run. */
  void enterWindow(DocumentWindow window) throws IOException {
    if (postings.isPast(window.end())) {
      windowMaxImpact = 0;
    } else if (blockMaxima != null) {
      windowMaxImpact = blockMaxima.upperBound(window);
    } else if (maxImpacts != null) {
      windowMaxImpact = maxImpacts.upperBound(window.start(), window.end());
    } else {
      windowMaxImpact = ((ShortPostings) postings).largest(window.start(), window.end());
    }
  }

  /** Reads the postings of a window and adds what they contribute; returns how many. */
  int add(DocumentWindow window, Accumulators accumulators) throws IOException {
    return postings.add(window, contributions, accumulators);
  }
}
