"""The only package that calls Java: the virtual machine, Lucene indexes, Anserini's text analysis."""

from pyserini_compneg.lucene.analysis import (
    ENGLISH,
    LANGUAGES,
    UNSPACED,
    analysis_settings,
    analyze,
    analyze_spans,
    checked_language,
)
from pyserini_compneg.lucene.gate import java_class, machine_runs
from pyserini_compneg.lucene.index_settings import LEAST_REORDERED, IndexSettings
from pyserini_compneg.lucene.manifest import (
    INDEX_CONCEPTS,
    LARGEST_IMPACT,
    MANIFEST_NAME,
    QUERY_TOKENIZER,
    SHARDS_NAME,
    Manifest,
    is_index,
    resolve_index,
)
from pyserini_compneg.lucene.rankings import Ranking
from pyserini_compneg.lucene.reader import CONTENTS, ImpactReader
from pyserini_compneg.lucene.requests import Reader
from pyserini_compneg.lucene.sharded_reader import ShardedReader, open_reader
from pyserini_compneg.lucene.writer import LONGEST_TERM_BYTES, ImpactWriter

__all__ = [
    "CONTENTS",
    "ENGLISH",
    "INDEX_CONCEPTS",
    "LANGUAGES",
    "LARGEST_IMPACT",
    "LONGEST_TERM_BYTES",
    "MANIFEST_NAME",
    "QUERY_TOKENIZER",
    "SHARDS_NAME",
    "ImpactReader",
    "ImpactWriter",
    "IndexSettings",
    "LEAST_REORDERED",
    "Manifest",
    "Ranking",
    "Reader",
    "ShardedReader",
    "UNSPACED",
    "analysis_settings",
    "analyze",
    "analyze_spans",
    "checked_language",
    "is_index",
    "java_class",
    "machine_runs",
    "open_reader",
    "resolve_index",
]
