"""Files of block maxima as bytes: their parts, and what earlier releases wrote."""

import zlib

from pyserini_compneg.lucene import java_class

FILE = "compneg.maxima"
VERSION = 4 + 1 + len("CompnegBlockMaxima")
FOOTER = 16


def with_stock_lucene(folder, change):
    """Changes an index by a writer of stock Lucene, which does not know of the file."""
    paths, directories = java_class("java.nio.file.Paths"), java_class("org.apache.lucene.store.FSDirectory")
    config = java_class("org.apache.lucene.index.IndexWriterConfig")()
    with_merges = java_class("org.apache.lucene.index.TieredMergePolicy")()
    config.setMergePolicy(with_merges)
    directory = directories.open(paths.get(str(folder)))
    writer = java_class("org.apache.lucene.index.IndexWriter")(directory, config)
    change(writer, lambda other: directories.open(paths.get(str(other))))
    writer.close()
    directory.close()


def parts(whole, documents):
    """The terms of a file, and where in its bytes their rows begin, and their postings begin and end."""

    def text(at):
        length, shift = 0, 0
        while True:
            length |= (whole[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if whole[at - 1] < 128:
                return length, at

    length, at = text(VERSION + 4 + 16)  # of the field, behind the id of the segment
    count, at = text(at + length)
    terms = []
    for _ in range(count):
        length, at = text(at)
        terms.append(whole[at : at + length].decode())
        at += length
    return terms, at, at + count * (1 + -(-documents // 32)), len(whole) - FOOTER - 8 * (count + 1)


def postings_of(index):
    """The documents and impacts of each term of an index of one segment."""
    paths, directories = java_class("java.nio.file.Paths"), java_class("org.apache.lucene.store.FSDirectory")
    directory = directories.open(paths.get(str(index)))
    reader = java_class("org.apache.lucene.index.DirectoryReader").open(directory)
    terms = reader.leaves().get(0).reader().terms("contents").iterator()
    found = {}
    while term := terms.next():
        postings = terms.postings(None, 8)
        found[term.utf8ToString()] = [(postings.nextDoc(), postings.freq()) for _ in range(terms.docFreq())]
    reader.close()
    directory.close()
    return found


def earlier_file(index, version, documents):
    """What an earlier release wrote beside an index: it had more terms, and no impacts of half a byte."""
    whole, blocks = (index / FILE).read_bytes(), -(-documents // 32)
    field = VERSION + 4 + 16
    head = whole[:VERSION] + version.to_bytes(4, "big") + whole[VERSION + 4 : field + 1 + whole[field]]
    kept = {term: found for term, found in postings_of(index).items() if len(found) >= blocks}
    varint = bytes([len(kept) & 127 | 128, len(kept) >> 7]) if len(kept) > 127 else bytes([len(kept)])
    body, written = head + varint + b"".join(bytes([len(term)]) + term.encode() for term in kept), b""
    starts = []
    for found in kept.values():
        largest, shift = max(impact for _, impact in found), 0
        while largest - 1 >> shift >= 255:
            shift += 1
        maxima, offsets, groups, postings = bytearray(blocks), [], [], b""
        for block in range(blocks + 1):
            if block % 64 == 0:
                groups.append(len(postings))
            offsets.append(len(postings) - groups[-1])
            own = [(doc % 32, impact) for doc, impact in found if doc // 32 == block]
            if own:
                maxima[block] = max((impact - 1 >> shift) + 1 for _, impact in own)
                postings += sum(1 << place for place, _ in own).to_bytes(4, "little")
                postings += b"".join((impact & 0xFFFF).to_bytes(1 if shift == 0 else 2, "little") for _, impact in own)
        body += bytes([shift]) + maxima
        starts.append(len(written))
        if shift <= 8:
            written += postings + b"".join(group.to_bytes(8, "little") for group in groups)
            written += b"".join(offset.to_bytes(2, "little") for offset in offsets)
    starts = [len(body) + start for start in (*starts, len(written))]
    postings = written + b"".join(start.to_bytes(8, "little") for start in starts) if version > 1 else b""
    return with_checksum(body + postings + whole[-FOOTER:-8])


def with_checksum(body):
    return body + zlib.crc32(body).to_bytes(8, "big")
