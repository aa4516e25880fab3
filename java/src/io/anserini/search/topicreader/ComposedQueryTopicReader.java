package io.anserini.search.topicreader;

import io.compneg.ComposedQueryFile;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * {@code -topicReader ComposedQuery}: composed queries as JSON lines {@code {"id", "contents", "vector" or
 * "score"}}. A topic's title is its line.
 */
public final class ComposedQueryTopicReader extends TopicReader<String> {
  public ComposedQueryTopicReader(Path topicFile) throws IOException {
    super(topicFile);
  }

  @Override
  public SortedMap<String, Map<String, String>> read(BufferedReader lines) {
    SortedMap<String, Map<String, String>> topics = new TreeMap<>();
    ComposedQueryFile.read(lines, topicFile.toString()).forEach((id, line) -> topics.put(id, Map.of("title", line)));
    return topics;
  }
}
