package io.compneg.update;

import io.compneg.index.Commits;
import io.compneg.index.ExternalIds;
import java.io.Closeable;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import org.apache.lucene.index.IndexReader;
import org.apache.lucene.index.MultiReader;
import org.apache.lucene.util.IOUtils;

/** What only all shards of an index together tell, for Python. */
public final class ShardUnion implements Closeable {
  private final MultiReader shards;

  /** Opens shards by their folders or commits (UTF-8, separated by line feeds), see {@link Commits#open}. */
  public ShardUnion(byte[] folders) throws IOException {
    String[] names = new String(folders, StandardCharsets.UTF_8).split("\n");
    IndexReader[] readers = new IndexReader[names.length];
    try {
      for (int i = 0; i < names.length; i++) readers[i] = Commits.open(names[i]);
    } catch (Throwable failure) {
      IOUtils.closeWhileHandlingException(readers);
      throw failure;
    }
    shards = new MultiReader(readers);
  }

  /** The first id that two documents have; null when there is none. */
  public String duplicateId() throws IOException {
    var found = ExternalIds.duplicates(shards, 1);
    return found.isEmpty() ? null : found.get(0);
  }

  /** How many documents have a field. */
  public int documentsWith(String field) throws IOException {
    return shards.getDocCount(field);
  }

  @Override
  public void close() throws IOException {
    shards.close();
  }
}
