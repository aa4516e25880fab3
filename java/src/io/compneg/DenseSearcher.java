package io.compneg;

import java.io.Closeable;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.FieldInfo;
import org.apache.lucene.index.FieldInfos;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.VectorSimilarityFunction;
import org.apache.lucene.search.CollectorManager;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.KnnFloatVectorQuery;
import org.apache.lucene.search.Scorable;
import org.apache.lucene.search.ScoreMode;
import org.apache.lucene.search.SimpleCollector;
import org.apache.lucene.store.FSDirectory;

/**
 * The door for Python to a flat index of dense vectors of length 1, as Anserini builds them.
 *
 * <p>A query is a subspace, given by the rows of an orthonormal basis. A document scores (1 + c) / 2, as in Lucene:
 * for one row c is its dot product with the document, and the score Lucene's own; for several it is the length of the
 * document's projection on their span. Every document is scored.
 */
public final class DenseSearcher implements Closeable {
  private static final String FIELD = "vector"; // io.anserini.index.Constants.VECTOR

  private final DirectoryReader reader;
  private final IndexSearcher searcher;
  private final ExternalIds externalIds;
  private final int dimensions;

  /** Opens the index in a folder. */
  public DenseSearcher(String folder) throws IOException {
    this.reader = DirectoryReader.open(FSDirectory.open(Path.of(folder)));
    FieldInfo info = FieldInfos.getMergedFieldInfos(reader).fieldInfo(FIELD);
    if (info == null || info.getVectorDimension() == 0) throw refused("no dense vectors in a field '" + FIELD + "'");
    if (info.getVectorSimilarityFunction() != VectorSimilarityFunction.DOT_PRODUCT) {
      throw refused("vectors that are compared by " + info.getVectorSimilarityFunction() + ", not by DOT_PRODUCT");
    }
    this.dimensions = info.getVectorDimension();
    this.searcher = new IndexSearcher(reader);
    this.searcher.setQueryCache(null);
    this.externalIds = new ExternalIds(reader);
  }

  private IllegalArgumentException refused(String why) throws IOException {
    reader.close();
    return new IllegalArgumentException(why);
  }

  /** Documents that are not deleted. */
  public int documentCount() {
    return reader.numDocs();
  }

  /** The numbers of a vector. */
  public int dimensions() {
    return dimensions;
  }

  /**
   * Searches queries on several threads.
   *
   * @param queries little-endian: the number of rows of each query (int32), then all rows (float32)
   * @param count the number of queries
   * @return as {@link Packed#rankings}
   */
  public byte[] search(byte[] queries, int count, int k, int threads) throws IOException {
    ByteBuffer packed = ByteBuffer.wrap(queries).order(ByteOrder.LITTLE_ENDIAN);
    int[] rows = new int[count];
    for (int i = 0; i < count; i++) rows[i] = packed.getInt();
    FloatBuffer values = packed.asFloatBuffer();
    List<Tasks.Task<TopHits.Ranking>> searches = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      float[][] basis = new float[rows[i]][dimensions];
      for (float[] row : basis) values.get(row);
      searches.add(() -> searchOne(basis, k));
    }
    return Packed.rankings(Tasks.runAll(searches, threads));
  }

  private TopHits.Ranking searchOne(float[][] basis, int k) throws IOException {
    TopHits top = new TopHits(k, externalIds);
    if (basis.length == 0) return top.ranking();
    float[] scores = basis.length == 1 ? scores(basis[0]) : projections(basis);
    for (int doc = 0; doc < scores.length; doc++) {
      if (!Float.isNaN(scores[doc])) top.offer(scores[doc], doc);
    }
    return top.ranking();
  }

  private float[] projections(float[][] basis) throws IOException {
    double[] squares = new double[reader.maxDoc()];
    for (float[] row : basis) {
      float[] scores = scores(row);
      for (int doc = 0; doc < scores.length; doc++) squares[doc] += Math.pow(2.0 * scores[doc] - 1, 2);
    }
    float[] projections = new float[squares.length];
    for (int doc = 0; doc < squares.length; doc++) projections[doc] = (float) ((1 + Math.sqrt(squares[doc])) / 2);
    return projections;
  }

  /** Lucene's score of every document, NaN for deleted ones: of as many neighbours as there are documents. */
  private float[] scores(float[] row) throws IOException {
    float[] scores = new float[reader.maxDoc()];
    Arrays.fill(scores, Float.NaN);
    int found = searcher.search(new KnnFloatVectorQuery(FIELD, row, reader.maxDoc()), new AllScores(scores));
    if (found < reader.numDocs()) {
      throw new IllegalArgumentException(
          "only " + found + " of " + reader.numDocs() + " documents are found by their vectors; not a flat index of all");
    }
    return scores;
  }

  /** Puts the scores of documents in their places, and counts them. */
  private record AllScores(float[] scores) implements CollectorManager<ScoreCollector, Integer> {
    @Override
    public ScoreCollector newCollector() {
      return new ScoreCollector(scores);
    }

    @Override
    public Integer reduce(Collection<ScoreCollector> collectors) {
      return collectors.stream().mapToInt(collector -> collector.found).sum();
    }
  }

  private static final class ScoreCollector extends SimpleCollector {
    private final float[] scores;
    private Scorable scorer;
    private int docBase;
    private int found;

    ScoreCollector(float[] scores) {
      this.scores = scores;
    }

    @Override
    protected void doSetNextReader(LeafReaderContext leaf) {
      docBase = leaf.docBase;
    }

    @Override
    public void setScorer(Scorable scorer) {
      this.scorer = scorer;
    }

    @Override
    public void collect(int doc) throws IOException {
      scores[docBase + doc] = scorer.score();
      found++;
    }

    @Override
    public ScoreMode scoreMode() {
      return ScoreMode.COMPLETE;
    }
  }

  @Override
  public void close() throws IOException {
    reader.close();
  }
}
