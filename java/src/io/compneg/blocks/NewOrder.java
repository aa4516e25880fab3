package io.compneg.blocks;

import org.apache.lucene.index.Sorter;

/** The numbers of documents before and after they are put in another order. */
final class NewOrder extends Sorter.DocMap {
  private final int[] oldNumbers;
  private final int[] newNumbers;

  /** The document {@code order[i]} becomes the i-th. */
  NewOrder(int[] order) {
    oldNumbers = order;
    newNumbers = new int[order.length];
    for (int i = 0; i < order.length; i++) newNumbers[order[i]] = i;
  }

  @Override
  public int oldToNew(int number) {
    return newNumbers[number];
  }

  @Override
  public int newToOld(int number) {
    return oldNumbers[number];
  }

  @Override
  public int size() {
    return oldNumbers.length;
  }
}
