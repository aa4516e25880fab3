package io.compneg.index;

import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;

/** The hashes of sources, by which an update finds the documents that have changed. */
public final class SourceHash {
  /** A field of each document, with a hash of its source. */
  public static final String FIELD = "compneg.hash";

  private SourceHash() {}

  public static MessageDigest hasher() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e); // every Java has it
    }
  }

  /** A hash of what was given to a hasher. */
  public static long of(MessageDigest hasher) {
    return ByteBuffer.wrap(hasher.digest()).getLong();
  }
}
