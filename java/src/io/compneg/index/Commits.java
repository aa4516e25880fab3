package io.compneg.index;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;
import java.util.TreeSet;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexCommit;
import org.apache.lucene.index.IndexDeletionPolicy;
import org.apache.lucene.index.SegmentInfos;
import org.apache.lucene.store.Directory;
import org.apache.lucene.store.FSDirectory;
import org.apache.lucene.util.StringHelper;

/** The commits of an index. A shard may have one that its list does not name, if an update of all shards was killed. */
public final class Commits {
  /** In the data of a commit: what the update has noted that made it. */
  public static final String UPDATE = "update";

  private Commits() {}

  /** Opens the commit of a {@code segments} file, or the last commit of a folder. */
  public static DirectoryReader open(String path) throws IOException {
    Path given = Path.of(path);
    if (Files.isDirectory(given)) return DirectoryReader.open(FSDirectory.open(given));
    return DirectoryReader.open(find(FSDirectory.open(given.getParent()), given.getFileName().toString()));
  }

  /** The id of the commit of a {@code segments} file, then the names of its files, a line each. */
  public static String describe(String path) throws IOException {
    Path given = Path.of(path);
    try (Directory directory = FSDirectory.open(given.getParent())) {
      SegmentInfos infos = SegmentInfos.readCommit(directory, given.getFileName().toString());
      return StringHelper.idToString(infos.getId()) + "\n" + String.join("\n", new TreeSet<>(infos.files(true)));
    }
  }

  static IndexCommit find(Directory directory, String segmentsFile) throws IOException {
    for (IndexCommit commit : DirectoryReader.listCommits(directory)) {
      if (commit.getSegmentsFileName().equals(segmentsFile)) return commit;
    }
    throw new NoSuchFileException(segmentsFile);
  }

  /** Keeps one commit beside the last, until {@link #release}. At first there is no other: later ones were left. */
  public static final class KeepOne extends IndexDeletionPolicy {
    private String kept; // its segments file; null for none

    public KeepOne(String segmentsFile) {
      kept = segmentsFile;
    }

    @Override
    public void onInit(List<? extends IndexCommit> commits) {
      for (IndexCommit commit : commits) {
        if (!isKept(commit) && (kept != null || commit != commits.get(commits.size() - 1))) commit.delete();
      }
    }

    @Override
    public void onCommit(List<? extends IndexCommit> commits) {
      for (IndexCommit commit : commits.subList(0, commits.size() - 1)) {
        if (!isKept(commit)) commit.delete();
      }
    }

    private boolean isKept(IndexCommit commit) {
      return commit.getSegmentsFileName().equals(kept);
    }

    /** The commit that is kept; null for none. */
    IndexCommit kept(Directory directory) throws IOException {
      return kept == null ? null : find(directory, kept);
    }

    public void release() {
      kept = null;
    }
  }
}
