package io.compneg.index;

import java.io.IOException;
import java.security.MessageDigest;
import org.apache.lucene.document.BinaryDocValuesField;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.FieldType;
import org.apache.lucene.document.NumericDocValuesField;
import org.apache.lucene.document.StoredField;
import org.apache.lucene.document.StringField;
import org.apache.lucene.index.IndexOptions;
import org.apache.lucene.util.BytesRef;

/** Makes Lucene's documents of those that are read. Threads may share it. */
final class DocumentMaker {
  private final ImpactIndexer.Settings settings;
  private final ImpactInverter inverter; // null where Lucene must see each term of a document
  private final FieldType impacts = new FieldType();
  private final DocumentFilter.UnrangedTexts unrangedTexts = new DocumentFilter.UnrangedTexts();

  DocumentMaker(ImpactIndexer.Settings settings, ImpactInverter inverter) {
    this.settings = settings;
    this.inverter = inverter;
    impacts.setTokenized(true);
    impacts.setIndexOptions(IndexOptions.DOCS_AND_FREQS);
    impacts.setStoreTermVectors(settings.storeDocvectors());
    impacts.freeze();
  }

  /**
   * Makes the document that a reader has read.
   *
   * @param raw the line to store for it
   */
  Document make(DocumentReader reader, LineScanner raw, MessageDigest hasher)
      throws IOException, DocumentReader.BadDocument {
    Document document = new Document();
    document.add(new StringField(ExternalIds.FIELD, reader.id(), Field.Store.YES));
    document.add(new BinaryDocValuesField(ExternalIds.FIELD, new BytesRef(reader.id()))); // breaks ties by docid
    document.add(new NumericDocValuesField(SourceHash.FIELD, raw.hash(hasher)));
    if (settings.storeRaw()) document.add(new StoredField("raw", raw.text()));
    try {
      if (!settings.filterFields().isEmpty()) {
        DocumentFilter.addValues(document, settings.filterFields(), raw.text(), unrangedTexts);
      }
    } catch (IllegalArgumentException e) {
      throw new DocumentReader.BadDocument(e.getMessage());
    }
    ImpactVector vector = reader.vector();
    boolean waits = inverter != null && vector.size() > 0;
    document.add(new Field(settings.field(), waits ? inverter.add(vector) : new ImpactTokenStream(vector), impacts));
    return document;
  }

  /** The texts in filter fields that no range finds. */
  DocumentFilter.UnrangedTexts unrangedTexts() {
    return unrangedTexts;
  }
}
