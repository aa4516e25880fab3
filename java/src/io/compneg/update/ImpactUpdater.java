package io.compneg.update;

import io.compneg.blocks.BlockMaxima;
import io.compneg.index.Commits;
import io.compneg.index.DocumentFilter;
import io.compneg.index.ExternalIds;
import io.compneg.index.ImpactIndexer;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.Map;
import org.apache.lucene.document.Document;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.Term;
import org.apache.lucene.util.BytesRef;

/**
 * Updates an impact index, for Python: a document replaces the document with its id. {@link #compare} says which ones
 * need not be written. The index that the update begins with can be opened until {@link #release}.
 */
public final class ImpactUpdater extends ImpactIndexer {
  private final Commits.KeepOne commits;
  private final UpdateBase base;
  private volatile boolean committed;

  /**
   * Starts an update of the index in a folder, see {@link ImpactIndexer}.
   *
   * @param commit the segments file of the commit from which to start; null for the last
   */
  public ImpactUpdater(String folder, String settings, String exchange, String commit) throws IOException {
    this(folder, settings, exchange, new Commits.KeepOne(commit));
  }

  private ImpactUpdater(String folder, String settings, String exchange, Commits.KeepOne commits) throws IOException {
    super(folder, settings, exchange, commits, BlockMaxima.UNFINISHED);
    this.commits = commits;
    try {
      base = new UpdateBase(DirectoryReader.open(writer));
      BlockMaxima.takeNext(base.reader());
    } catch (IOException | RuntimeException e) {
      super.close();
      throw e;
    }
  }

  @Override
  protected String stateKey() {
    return Commits.UPDATE;
  }

  @Override
  protected void write(String id, Document document) throws IOException {
    writer.updateDocument(new Term(ExternalIds.FIELD, id), document);
  }

  @Override
  public void commit(String state) throws IOException {
    super.commit(state);
    committed = true;
  }

  @Override
  protected void addData(Map<String, String> data) {
    data.put(DocumentFilter.KNOWN, filterFields());
  }

  @Override
  protected String maximaFile() {
    return BlockMaxima.NEXT;
  }

  /**
   * Compares the documents of a block with those of the index that is updated, see {@link UpdateBase#compare}.
   *
   * @param sources what would be stored for each line; empty to store the lines themselves
   */
  public byte[] compare(byte[] lines, byte[] sources, boolean remembers) throws IOException {
    return base.compare(reader(lines), sources.length == 0 ? lines : sources, remembers);
  }

  /** Why the index that is updated cannot be adopted, see {@link UpdateBase#unfit}; null if it can. */
  public String unfit() throws IOException {
    return base.unfit(field());
  }

  /** Removes the documents of ids (UTF-8, separated by line feeds); returns what each id is here. */
  public byte[] remove(byte[] ids) throws IOException {
    delete(ids, ExternalIds.FIELD, false);
    return base.take(Arrays.stream(texts(ids)).map(BytesRef::new).toList());
  }

  /**
   * The next ids (UTF-8, separated by line feeds) of documents that this update has named in no call; empty at the end.
   *
   * @param ending only ids that end so
   */
  public byte[] missing(String ending, int most) throws IOException {
    return String.join("\n", base.missing(ending, most)).getBytes(StandardCharsets.UTF_8);
  }

  /** Begins to write all documents and to do the merges that are due; call {@link #optimized} until it is done. */
  public void settle() {
    begin(() -> {
      writer.flush();
      writer.maybeMerge();
      awaitMerges();
      return null;
    });
  }

  /** Removes the files of the commit that the update began with. Until then it can be opened beside the new one. */
  public void release() throws IOException {
    base.close(); // while the writer is open, which removes them
    commits.release();
    writer.deleteUnusedFiles();
    try (DirectoryReader reader = DirectoryReader.open(writer)) {
      BlockMaxima.takeNext(reader);
    }
  }

  @Override
  protected void rollBack() throws IOException {
    super.rollBack();
    if (!committed) Files.deleteIfExists(folder.resolve(BlockMaxima.NEXT));
    if (base != null) base.close(); // null where it could not be opened
  }
}
