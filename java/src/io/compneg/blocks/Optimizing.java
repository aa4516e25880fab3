package io.compneg.blocks;

import java.io.IOException;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.LongAdder;
import org.apache.lucene.index.CodecReader;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;

/**
 * Merges an index into one segment, in which documents that share terms may stand together, with {@link BlockMaxima}.
 */
public final class Optimizing implements Callable<Void> {
  private static final int HEAP_SHARE = 4; // for the order

  private final IndexWriter writer;
  private final String field;
  private final String maxima; // the name of their file; null to leave the documents in their order
  private final boolean required;
  private final int threads;
  private final LongAdder divided = new LongAdder();
  private volatile long toDivide;
  private volatile String stage = "merging";
  private volatile boolean reordered;

  /**
   * Prepares a merge. The commit in the folder stays as it is until the next one.
   *
   * @param maxima the name of the file of the block maxima; null to leave the documents in their order
   * @param required whether it is an error if there is not enough memory for another order
   */
  public Optimizing(IndexWriter writer, String field, String maxima, boolean required, int threads) {
    this.writer = writer;
    this.field = field;
    this.maxima = maxima;
    this.required = required;
    this.threads = threads;
  }

  @Override
  public Void call() throws IOException, InterruptedException {
    writer.forceMerge(1);
    if (maxima != null) reorder();
    return null;
  }

  private void reorder() throws IOException, InterruptedException {
    stage = "reordering";
    try (DirectoryReader reader = DirectoryReader.open(writer)) {
      if (reader.leaves().isEmpty()) return;
      if (reader.leaves().size() > 1) throw new IllegalStateException("the index is not merged");
      CodecReader segment = (CodecReader) reader.leaves().get(0).reader();
      long share = Runtime.getRuntime().maxMemory() / HEAP_SHARE; // not of what is free now, which differs
      toDivide = GraphBisection.work(segment.maxDoc());
      int[] order;
      try {
        order = GraphBisection.order(segment, field, threads, share, divided);
      } catch (OutOfMemoryError e) {
        if (required) throw e;
        return; // nothing is written yet
      }
      stage = "writing in the new order";
      writer.deleteAll(); // the reader keeps its files until it is closed
      writer.addIndexes(new ReorderedSegment(segment, new NewOrder(order), field));
    }
    stage = "writing blocks";
    try (DirectoryReader reader = DirectoryReader.open(writer)) {
      BlockMaxima.write(reader.leaves().get(0).reader(), field, writer.getDirectory(), maxima);
    }
    reordered = true;
  }

  /** What it does at the moment. */
  public String stage() {
    return stage;
  }

  /** The share of the work for the new order that is done. */
  public double ordered() {
    return Math.min(1, divided.sum() / (double) Math.max(1, toDivide));
  }

  /** Whether the documents are in another order. */
  public boolean reordered() {
    return reordered;
  }
}
