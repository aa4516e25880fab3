package io.compneg;

/** Takes the documents of a search as they are scored. */
interface ScoreSink {
  /** The score that a further document must reach to be of use, by a better id if it is equal; −∞ at first. */
  float threshold();

  /** Takes a matching document of the whole index; a segment's come in ascending order. No score is −0. */
  void offer(float score, int doc);
}
