package io.compneg.search;

import com.fasterxml.jackson.databind.node.ArrayNode;
import io.compneg.index.DocumentFilter;
import io.compneg.index.Json;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.lucene.document.DoublePoint;
import org.apache.lucene.index.IndexReader;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.MultiTerms;
import org.apache.lucene.index.PointValues;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.Terms;
import org.apache.lucene.index.TermsEnum;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.util.BytesRef;

/**
 * The order of documents by their values in a filter field: numbers ascend before texts, which ascend by code points.
 * Of several values of a document one counts, and of a document with numbers only these.
 *
 * <p>The order is kept as a rank for each document, because filter fields have no doc values.
 */
final class FieldOrder {
  private final int[] ranks; // −1 without a value
  private final double[] numbers; // distinct and ascending; their ranks come first
  private final List<String> texts = new ArrayList<>();

  /**
   * Reads the values of all documents.
   *
   * @param largest whether the largest value of a document counts, and not the smallest
   */
  FieldOrder(IndexReader reader, String field, boolean largest) throws IOException {
    double[] counting = new double[reader.maxDoc()];
    Arrays.fill(counting, Double.NaN);
    for (LeafReaderContext leaf : reader.leaves()) {
      PointValues points = leaf.reader().getPointValues(DocumentFilter.points(field));
      if (points != null) points.intersect(new Numbers(counting, leaf.docBase, largest));
    }
    numbers = Arrays.stream(counting).filter(number -> !Double.isNaN(number)).sorted().distinct().toArray();
    ranks = new int[counting.length];
    for (int doc = 0; doc < ranks.length; doc++) {
      ranks[doc] = Double.isNaN(counting[doc]) ? -1 : Arrays.binarySearch(numbers, counting[doc]);
    }
    Terms terms = MultiTerms.getTerms(reader, field);
    if (terms != null) rankTexts(terms.iterator(), counting, largest);
  }

  private void rankTexts(TermsEnum each, double[] counting, boolean largest) throws IOException {
    PostingsEnum postings = null;
    for (BytesRef text = each.next(); text != null; text = each.next()) {
      postings = each.postings(postings, PostingsEnum.NONE);
      boolean counts = false;
      for (int doc; (doc = postings.nextDoc()) != DocIdSetIterator.NO_MORE_DOCS;) {
        if (!Double.isNaN(counting[doc]) || ranks[doc] >= 0 && !largest) continue;
        ranks[doc] = numbers.length + texts.size();
        counts = true;
      }
      if (counts) texts.add(text.utf8ToString());
    }
  }

  /** The rank of a document's value; −1 without a value. */
  int rank(int doc) {
    return ranks[doc];
  }

  /** How many ranks there are. */
  int size() {
    return numbers.length + texts.size();
  }

  /** The values in the order of their ranks, as a list in JSON. */
  String values() {
    ArrayNode values = Json.MAPPER.createArrayNode();
    for (double number : numbers) values.add(number);
    texts.forEach(values::add);
    return values.toString();
  }

  /** Takes the smallest or the largest number of each document. */
  private record Numbers(double[] counting, int docBase, boolean largest) implements PointValues.IntersectVisitor {
    @Override
    public void visit(int doc) {
      throw new UnsupportedOperationException("each point is looked at");
    }

    @Override
    public void visit(int doc, byte[] packed) {
      double number = DoublePoint.decodeDimension(packed, 0);
      double before = counting[docBase + doc];
      if (Double.isNaN(before) || (largest ? number > before : number < before)) counting[docBase + doc] = number;
    }

    @Override
    public PointValues.Relation compare(byte[] minPackedValue, byte[] maxPackedValue) {
      return PointValues.Relation.CELL_CROSSES_QUERY;
    }
  }
}
