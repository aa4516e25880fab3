"""Published topics are read as Anserini's readers read them.

``COMPNEG_TOPICS`` is a checkout of castorini/anserini-tools or castorini/eval, with ``topics`` and ``topics.json``:
``COMPNEG_TOPICS=... pytest tests/topics/test_published_topics.py``. Without it, nothing is tested.
"""

import html
import json
import os
from pathlib import Path

import pytest

from pyserini_compneg.lucene import java_class
from pyserini_compneg.support.errors import InputError
from pyserini_compneg.topics.topics import read_topics

FOLDER = Path(os.environ.get("COMPNEG_TOPICS") or "none")
FILES = sorted((FOLDER / "topics").iterdir()) if FOLDER.is_dir() else []
NOT_TEXT = {
    "`vector` must be a JSON object, got a list": "vectors of dense models",
    "no plain text": "queries that are images",
    "the title is blank": "a blank topic, which --on-error skip leaves out",
    "was given on line": "an id that is there twice, of which --on-error skip leaves out the later one",
}


@pytest.fixture(scope="module")
def readers():
    known = json.loads((FOLDER / "topics.json").read_text())
    return {topics["path"]: topics["reader_class"] for topics in known.values()}


@pytest.mark.skipif(not FILES, reason="COMPNEG_TOPICS names no folder with topics")
@pytest.mark.parametrize("path", FILES or [None], ids=lambda path: path and path.name)
def test_a_file(path, readers):
    try:
        ours = {topic.qid: clean(topic.text) for topic in read_topics(path, "plain")}
    except InputError as error:
        pytest.skip(next(kind for what, kind in NOT_TEXT.items() if what in error.what))
    reader = readers.get(path.name)
    if reader is None:
        return
    theirs = {qid: clean(text_of(fields)) for qid, fields in anserini(path, reader).items()}
    if reader.endswith("EpidemicQATopicReader"):  # it drops the letters, so that experts' and consumers' ids are equal
        ours = {str(int(qid[2:])): text for qid, text in ours.items()}
    assert {qid: text for qid, text in theirs.items() if "\ufffd" not in text}.items() <= ours.items()
    assert ours.keys() == theirs.keys()


def anserini(path, reader):
    read = java_class("io.anserini.search.topicreader.TopicReader").getTopicsWithStringIdsFromFileWithTopicReaderClass
    is_new = java_class("org.apache.lucene.util.Version").LATEST.major > 9
    topics = read(str(path), reader) if is_new else read(reader, str(path))
    return json.loads(java_class("com.fasterxml.jackson.databind.ObjectMapper")().writeValueAsString(topics))


def text_of(fields):
    return next(fields[name] for name in ("title", "query", "query_txt") if name in fields)


def clean(text):
    return " ".join(html.unescape(text).split())
