package io.anserini.search.topicreader;

import com.fasterxml.jackson.databind.JsonNode;
import io.compneg.index.DocumentFilter;
import io.compneg.search.ScoringTree;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * {@code -topicReader ComposedQuery}: composed queries as JSON lines {@code {"id", "contents", "vector" or
 * "score"}}. A topic's title is its line. The whole file is checked before any query is searched.
 */
public final class ComposedQueryTopicReader extends TopicReader<String> {
  public ComposedQueryTopicReader(Path topicFile) throws IOException {
    super(topicFile);
  }

  @Override
  public SortedMap<String, Map<String, String>> read(BufferedReader lines) {
    SortedMap<String, Map<String, String>> topics = new TreeMap<>();
    readLines(lines, topicFile.toString()).forEach((id, line) -> topics.put(id, Map.of("title", line)));
    return topics;
  }

  /**
   * A file that cannot be read.
   *
   * <p>It is an error and no exception, because of any exception Anserini only says that the topic reader cannot be
   * loaded, and ends with status 0. An error ends Anserini with this message.
   */
  static final class UnreadableFileError extends Error {
    private static final long serialVersionUID = 1;

    private UnreadableFileError(String message) {
      super(message, null, false, false);
    }

    @Override
    public String toString() {
      return getMessage();
    }
  }

  /**
   * Reads all lines that are not blank.
   *
   * @param source the name of the file, for messages
   * @return the lines by their ids, sorted
   * @throws UnreadableFileError when a line is no composed query, has no id or that of another, or when there is none
   */
  private static SortedMap<String, String> readLines(BufferedReader lines, String source) {
    SortedMap<String, String> byId = new TreeMap<>();
    int number = 0;
    try {
      for (String line; (line = lines.readLine()) != null;) {
        number++;
        if (line.isBlank()) continue;
        String id = id(line);
        if (byId.put(id, line) != null) throw new IllegalArgumentException("the id '" + id + "' was given before");
      }
    } catch (IllegalArgumentException | IOException e) {
      throw new UnreadableFileError(source + ":" + number + ": " + e.getMessage());
    }
    if (byId.isEmpty()) {
      throw new UnreadableFileError(source + ": no queries; expected JSON lines with an id and a vector or a score");
    }
    return byId;
  }

  private static String id(String line) throws IOException {
    JsonNode query = ScoringTree.json(line);
    ScoringTree.of(query);
    DocumentFilter.of(query.get("filter"));
    JsonNode id = query.path("id");
    String text = id.isTextual() || id.isIntegralNumber() ? id.asText() : "";
    if (text.matches("\\S+")) return text;
    throw new IllegalArgumentException("expected an \"id\" without white space, got " + id);
  }
}
