package io.compneg.search;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.lucene.util.BytesRef;

/** The bytes that cross to and from Python in bulk: little-endian numbers, then ids in UTF-8, each ended by a NUL. */
final class WireFormat {
  private static final int LARGEST = Integer.MAX_VALUE - 64;

  private WireFormat() {}

  /** Writes −1 − the index of the query that failed (int32), then why, in UTF-8. */
  static byte[] failure(int query, Exception cause) {
    byte[] why = (cause.getMessage() == null ? cause.toString() : cause.getMessage()).getBytes(StandardCharsets.UTF_8);
    return allocate(4L + why.length).putInt(-1 - query).put(why).array();
  }

  /** Writes the number of hits of each ranking (int32), then all scores (float32), then all ids. */
  static byte[] rankings(List<TopHitsCollector.Ranking> rankings) {
    long hits = 0;
    long idBytes = 0;
    for (TopHitsCollector.Ranking ranking : rankings) {
      hits += ranking.ids().length;
      for (BytesRef id : ranking.ids()) idBytes += id.length + 1;
    }
    ByteBuffer packed = allocate(4 * (rankings.size() + hits) + idBytes);
    for (TopHitsCollector.Ranking ranking : rankings) packed.putInt(ranking.ids().length);
    for (TopHitsCollector.Ranking ranking : rankings) {
      for (float score : ranking.scores()) packed.putFloat(score);
    }
    for (TopHitsCollector.Ranking ranking : rankings) {
      for (BytesRef id : ranking.ids()) packed.put(id.bytes, id.offset, id.length).put((byte) 0);
    }
    return packed.array();
  }

  /** Writes a zero (int32), then the results of {@link MatchCounter}, a JSON list in UTF-8. */
  static byte[] matches(List<ObjectNode> results) {
    byte[] json = results.toString().getBytes(StandardCharsets.UTF_8);
    return allocate(4L + json.length).putInt(0).put(json).array();
  }

  /** Writes all scores (float32). */
  static byte[] scores(List<float[]> lists) {
    long count = 0;
    for (float[] list : lists) count += list.length;
    ByteBuffer packed = allocate(4 * count);
    for (float[] list : lists) {
      for (float score : list) packed.putFloat(score);
    }
    return packed.array();
  }

  /** Reads the number of ids in each of {@code lists} lists (int32), then all ids. */
  static List<BytesRef[]> ids(byte[] packed, int lists) {
    ByteBuffer counts = ByteBuffer.wrap(packed).order(ByteOrder.LITTLE_ENDIAN);
    int start = 4 * lists;
    List<BytesRef[]> ids = new ArrayList<>();
    for (int i = 0; i < lists; i++) {
      BytesRef[] list = new BytesRef[counts.getInt()];
      for (int j = 0; j < list.length; j++) {
        int end = start;
        while (packed[end] != 0) end++;
        list[j] = new BytesRef(packed, start, end - start);
        start = end + 1;
      }
      ids.add(list);
    }
    return ids;
  }

  private static ByteBuffer allocate(long bytes) {
    if (bytes > LARGEST) {
      throw new IllegalArgumentException(
          "the answer to this batch has " + bytes + " bytes; search fewer queries at once");
    }
    return ByteBuffer.allocate((int) bytes).order(ByteOrder.LITTLE_ENDIAN);
  }
}
