package io.compneg.index;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;

/** Walks through the lines of a block of text. */
public final class LineScanner {
  private final byte[] block;
  private int start;
  private int end = -1;

  public LineScanner(byte[] block) {
    this.block = block;
  }

  /** Moves to the next line; false at the end of the block. */
  public boolean next() {
    start = end + 1;
    if (start >= block.length) return false;
    end = start;
    while (end < block.length && block[end] != '\n') end++;
    return true;
  }

  /** Where the line starts. */
  int start() {
    return start;
  }

  /** Where the line ends: its line feed, or the end of the block. */
  int end() {
    return end;
  }

  /** Whether there is nothing but what JSON takes for white space from {@code position} to the line's end. */
  boolean blankFrom(int position) {
    for (int i = position; i < end; i++) {
      if (block[i] != ' ' && block[i] != '\t' && block[i] != '\r') return false;
    }
    return true;
  }

  /** Whether the line starts with UTF-8's byte order mark. */
  boolean hasByteOrderMark() {
    return end - start >= 3 && block[start] == (byte) 0xef && block[start + 1] == (byte) 0xbb
        && block[start + 2] == (byte) 0xbf;
  }

  /** Whether the line holds a NUL, as texts of two or four bytes a character do. */
  boolean hasNul() {
    for (int i = start; i < end; i++) {
      if (block[i] == 0) return true;
    }
    return false;
  }

  /** The line without its end. */
  String text() {
    return new String(block, start, length(), StandardCharsets.UTF_8);
  }

  /** A hash of the line without its end. */
  public long hash(MessageDigest hasher) {
    hasher.update(block, start, length());
    return SourceHash.of(hasher);
  }

  private int length() {
    return end > start && block[end - 1] == '\r' ? end - 1 - start : end - start;
  }
}
