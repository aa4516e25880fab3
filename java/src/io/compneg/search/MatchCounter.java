package io.compneg.search;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.compneg.index.DocumentFilter;
import io.compneg.index.Json;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.lucene.index.IndexReader;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.TermsEnum;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.util.BytesRef;
import org.apache.lucene.util.FixedBitSet;

/**
 * Counts the documents that match a query, and how many of them have each value of some filter fields. A document
 * matches if a search for all hits would find it, so nothing is pruned.
 *
 * <p>The values are counted at the end, from their postings: filter fields have no doc values. Of passages, one stands
 * for each document, whose values all of them have.
 */
final class MatchCounter implements Mergeable<MatchCounter, ObjectNode> {
  /** A field, and how many of its values are given, those that most documents have. */
  record Facet(String field, int most) {}

  private static final Comparator<Map.Entry<BytesRef, Integer>> MOST_FIRST =
      Map.Entry.<BytesRef, Integer>comparingByValue().reversed().thenComparing(Map.Entry.comparingByKey());

  private final IndexReader reader;
  private final List<Facet> facets;
  private final Passages passages; // null to count each document of Lucene
  private final FixedBitSet matches; // null without facets and passages
  private long count;

  MatchCounter(IndexReader reader, List<Facet> facets, Passages passages) {
    this.reader = reader;
    this.facets = facets;
    this.passages = passages;
    matches = facets.isEmpty() && passages == null ? null : new FixedBitSet(reader.maxDoc());
  }

  @Override
  public float minCompetitiveScore() {
    return Float.NEGATIVE_INFINITY;
  }

  @Override
  public void collect(int doc, float score) {
    count++;
    if (matches != null) matches.set(passages == null ? doc : passages.first(doc));
  }

  @Override
  public void addAll(MatchCounter other) {
    count += other.count;
    if (matches != null) matches.or(other.matches);
  }

  /**
   * As JSON: {@code {"count": 2, "facets": {field: [[value, count, isNumber], …]}}}, equal counts by ascending value.
   */
  @Override
  public ObjectNode result() throws IOException {
    if (passages != null) count = matches.cardinality();
    ObjectNode result = Json.MAPPER.createObjectNode().put("count", count);
    ObjectNode counted = result.putObject("facets");
    for (Facet facet : facets) {
      List<Map.Entry<BytesRef, Integer>> values = new ArrayList<>(count(facet.field).entrySet());
      values.sort(MOST_FIRST);
      ArrayNode listed = counted.putArray(facet.field);
      for (var value : values.subList(0, Math.min(facet.most, values.size()))) {
        String text = value.getKey().utf8ToString();
        listed.addArray().add(text).add(value.getValue()).add(DocumentFilter.isNumber(reader, facet.field, text));
      }
    }
    return result;
  }

  private Map<BytesRef, Integer> count(String field) throws IOException {
    Map<BytesRef, Integer> counts = new HashMap<>();
    if (count == 0) return counts;
    for (LeafReaderContext leaf : reader.leaves()) {
      if (leaf.reader().terms(field) == null) continue;
      TermsEnum values = leaf.reader().terms(field).iterator();
      PostingsEnum postings = null;
      for (BytesRef value = values.next(); value != null; value = values.next()) {
        postings = values.postings(postings, PostingsEnum.NONE);
        int found = 0;
        for (int doc; (doc = postings.nextDoc()) != DocIdSetIterator.NO_MORE_DOCS;) {
          if (matches.get(leaf.docBase + doc)) found++;
        }
        if (found > 0) counts.merge(BytesRef.deepCopyOf(value), found, Integer::sum);
      }
    }
    return counts;
  }
}
