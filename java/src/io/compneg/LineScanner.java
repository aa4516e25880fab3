package io.compneg;

import java.nio.charset.StandardCharsets;

/** Walks through the lines of a block of text. */
final class LineScanner {
  private final byte[] block;
  private int start;
  private int end = -1;

  LineScanner(byte[] block) {
    this.block = block;
  }

  /** Moves to the next line; false at the end of the block. */
  boolean next() {
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

  /** Whether there is nothing but ASCII white space from {@code position} to the line's end. */
  boolean blankFrom(int position) {
    for (int i = position; i < end; i++) if (block[i] > ' ' || block[i] < 0) return false;
    return true;
  }

  /** The line without its end. */
  String text() {
    int length = end - start;
    if (length > 0 && block[end - 1] == '\r') length--;
    return new String(block, start, length, StandardCharsets.UTF_8);
  }
}
