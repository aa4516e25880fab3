package io.compneg.search;

import io.compneg.blocks.ImpactPostings;
import io.compneg.index.DocumentFilter;
import org.apache.lucene.index.Impacts;
import org.apache.lucene.index.LeafReader;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.Weight;
import org.apache.lucene.util.Version;

/** What the lines of Lucene do in different ways. Each has a class of its own, which compiles on that line only. */
abstract class LuceneLine {
  private static final LuceneLine CURRENT = load();

  /**
   * The line that is running.
   *
   * @throws UnsupportedOperationException when it is none of those that there is a class for
   */
  static LuceneLine current() {
    if (CURRENT != null) return CURRENT;
    throw new UnsupportedOperationException("this runs on Lucene 9 and 10, here is " + Version.LATEST);
  }

  private static LuceneLine load() {
    try {
      Class<?> line = Class.forName("io.compneg.search.Lucene" + Version.LATEST.major);
      return (LuceneLine) line.getDeclaredConstructor().newInstance();
    } catch (ReflectiveOperationException e) {
      return null;
    }
  }

  /** The weight of a query; see {@link ComposedWeight#of}. */
  abstract Weight weight(Query query, String field, ScoringTree tree, DocumentFilter filter, float boost);

  /** A reader of a term's postings; see {@link ImpactPostings#ImpactPostings}. */
  abstract ImpactPostings postings(PostingsEnum postings, LeafReader segment, Term term);

  /** The largest term frequency of a level of block maxima. */
  abstract int largestFrequency(Impacts maxima, int level);
}
