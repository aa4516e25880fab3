package io.compneg;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.lucene.util.BytesRef;

/** Runs searches on several threads, and packs their rankings into one array for Python. */
final class RankingBatch {
  private static final int LARGEST_ANSWER = Integer.MAX_VALUE - 64;

  /** One search. */
  @FunctionalInterface
  interface Search {
    TopHits.Ranking run() throws IOException;
  }

  private RankingBatch() {}

  /**
   * Runs the searches.
   *
   * @return little-endian: the number of hits of each search (int32), then all scores (float32), then all ids,
   *     UTF-8, each followed by a NUL
   */
  static byte[] run(List<Search> searches, int threads) throws IOException {
    List<TopHits.Ranking> rankings = new ArrayList<>();
    if (threads <= 1 || searches.size() == 1) {
      for (Search search : searches) rankings.add(search.run());
      return pack(rankings);
    }
    ExecutorService pool = Executors.newFixedThreadPool(Math.min(threads, searches.size()));
    try {
      List<Future<TopHits.Ranking>> pending = new ArrayList<>();
      for (Search search : searches) pending.add(pool.submit(search::run));
      for (Future<TopHits.Ranking> ranking : pending) rankings.add(ranking.get());
      return pack(rankings);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted", e);
    } catch (ExecutionException e) {
      if (e.getCause() instanceof RuntimeException cause) throw cause;
      throw new IOException(e.getCause().getMessage(), e.getCause());
    } finally {
      pool.shutdownNow();
    }
  }

  private static byte[] pack(List<TopHits.Ranking> rankings) {
    long hits = 0;
    long idBytes = 0;
    for (TopHits.Ranking ranking : rankings) {
      hits += ranking.ids().length;
      for (BytesRef id : ranking.ids()) idBytes += id.length + 1;
    }
    long bytes = 4 * (rankings.size() + hits) + idBytes;
    if (bytes > LARGEST_ANSWER) {
      throw new IllegalArgumentException("the answer to this batch has " + bytes + " bytes; search fewer queries at once");
    }
    ByteBuffer packed = ByteBuffer.allocate((int) bytes).order(ByteOrder.LITTLE_ENDIAN);
    for (TopHits.Ranking ranking : rankings) packed.putInt(ranking.ids().length);
    for (TopHits.Ranking ranking : rankings) for (float score : ranking.scores()) packed.putFloat(score);
    for (TopHits.Ranking ranking : rankings) {
      for (BytesRef id : ranking.ids()) packed.put(id.bytes, id.offset, id.length).put((byte) 0);
    }
    return packed.array();
  }
}
