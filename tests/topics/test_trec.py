"""TREC's topics from files, and topics that Pyserini knows by their names."""

import gzip
import logging
import subprocess
import sys
from types import SimpleNamespace

import pytest
from refusals import refusal

from pyserini_compneg.commands.main import main
from pyserini_compneg.expression import Atom, Difference
from pyserini_compneg.lucene import java_class, named_topics
from pyserini_compneg.support.errors import DownloadError, QueryError
from pyserini_compneg.topics.topics import Topic, read_topics

AD_HOC = """\

<top>
<head> Tipster Topic Description
<num> Number: 051
<title> Topic: Airbus Subsidies NOT Boeing

<desc> Description:
Aid by governments, if x < 5 &amp; AT&T.
<narr> Narrative: 
A relevant document
is <em>cited.
</top>
<TOP><num>Number: MB01 </num>
<title>
spy films
</title>no part of it<desc></desc>
</TOP>
"""
WEB = """\
<?xml version="1.0"?>
<webtrack2009>
<topic number="7" type="faceted"><query>spy films</query><description>Which?</description></topic>
<topic number="8"><query>birds</query></topic>
</webtrack2009>
"""


@pytest.fixture
def write(tmp_path):
    def write(text, name="topics.txt"):
        path = tmp_path / name
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        return path

    return write


def texts(path, **options):
    return [(topic.qid, topic.text) for topic in read_topics(path, **options)]


@pytest.mark.parametrize("name", ["topics.51-100.txt", "topics.gz"])
def test_titles_are_plain_text(write, name):
    path = write(AD_HOC.replace("\n", "\r\n"), name)
    title = "Airbus Subsidies NOT Boeing"
    assert read_topics(path) == [Topic("51", title, Atom(title)), Topic("MB01", "spy films", Atom("spy films"))]
    assert [topic.plain for topic in read_topics(path)] == [True, True]
    assert [topic.source for topic in read_topics(path)] == [f"{path}:2", f"{path}:13"]
    (parsed, _) = read_topics(path, "expression")
    assert parsed.expression == Difference(Atom("Airbus Subsidies"), Atom("Boeing"))


def test_other_fields(write, caplog):
    path = write(AD_HOC)
    for name in ("desc", "description"):
        assert texts(path, field=name, skip=True) == [("51", "Aid by governments, if x < 5 & AT&T.")]
        said = "the topic has no description; name one of its fields as --topic-field: title; left out"
        assert caplog.messages.pop() == f"{path}:13: {said}"
    assert texts(write(WEB), field="query") == [("7", "spy films"), ("8", "birds")]


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        (AD_HOC, {"field": "narr"}, ":13: the topic has no narrative; name one of its fields as --topic-field: title"),
        (WEB, {}, ":3: the topic has no title; name one of its fields as --topic-field: query, description"),
        ("<top><title>spy</top>", {}, """:1: the topic has no number; expected <num>, or <topic number="1">"""),
        ("<top><num>1<title>spy</top>\n<top><num>01<title>b</top>", {}, ":2: query id '1' was given on line 1 already"),
        ("<top>\n<num>1\n<title>spy\n", {}, ":1: a topic that does not end; expected </top>"),
        ("<top>\n<num>1<title>spy\n<top>", {}, ":3: <top> where none is expected"),
        ("<topics>\n</topic>", {}, ":2: </topic> where none is expected"),
        ("<topics></topics>", {}, ": no topics; expected lines of qid<TAB>expression, JSON objects, or TREC's <top>"),
        ("1\tspy", {"field": "desc"}, ": has no topics of TREC, so --topic-field has no use"),
    ],
)
def test_wrong_topics(write, text, options, said):
    path = write(text)
    assert refusal(read_topics, path, **options) == f"{path}{said}"


def test_a_number_of_any_length(write):
    assert texts(write(f"<top><num>0{'9' * 5000}<title>spy</top>\n<top><num>00<title>b</top>")) == [
        ("9" * 5000, "spy"),
        ("0", "b"),
    ]


def test_a_title_that_is_no_expression(write):
    path = write("<top>\n<num>1<title>spy NOT (\n</top>")
    assert texts(path) == [("1", "spy NOT (")]
    assert refusal(read_topics, path, "expression", error=QueryError).startswith(f"{path}:1: ")


@pytest.fixture(params=["topics_mapping", "_get_topics_mapping"])
def pyserini(request, monkeypatch):
    """Stands in for Pyserini's module of topics, of Pyserini 1 or 2."""

    def get_topics(name):
        if name == "offline":
            raise OSError("no\nroute")
        if name == "damaged":
            raise ValueError("Unable to load topic")
        return {10: {"title": "spy NOT comedies"}, 9: {"title": "birds", "narrative": "all"}, "a": {"title": "bats"}}

    known = dict.fromkeys(["msmarco-passage-dev-subset", "offline", "damaged"])
    names = known if request.param == "topics_mapping" else lambda: known
    base = SimpleNamespace(get_topics=get_topics, **{request.param: names})
    monkeypatch.setattr(named_topics, "_pyserini_search_base", lambda: base)


def test_topics_by_name(pyserini, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = "msmarco-passage-dev-subset"
    assert texts(name) == [("9", "birds"), ("10", "spy NOT comedies"), ("a", "bats")]
    assert [topic.plain for topic in read_topics(name)] == [True] * 3
    assert texts(name, field="narr", skip=True) == [("9", "all")]
    said = f"{name}: topic 10: the topic has no narrative; name one of its fields as --topic-field: title"
    assert refusal(read_topics, name, field="narrative") == said
    said = f"msmarco-passage-dev-subst: no such file, and Pyserini has no topics of that name; nearest: {name}"
    assert refusal(read_topics, "msmarco-passage-dev-subst") == said
    for failing, why in (("offline", "no route"), ("damaged", "Unable to load topic")):
        said = f"no such file, and Pyserini's topics of a name need a network: {why}; give a file of topics"
        assert refusal(read_topics, failing, error=DownloadError) == f"{failing}: {said}"
    assert refusal(read_topics, "missing.tsv") == "missing.tsv: no such file"
    (tmp_path / name).write_text("1\tspy\n")  # a file is a file
    assert texts(name) == [("1", "spy")]


def test_pyserinis_own_topics(tmp_path, monkeypatch):
    """Pyserini 1 reads a file beside it without a network. Its module brings neither torch nor a logger."""
    if java_class("org.apache.lucene.util.Version").LATEST.major > 9:
        pytest.skip("Pyserini 2 needs a network")
    (tmp_path / "topics.msmarco-passage.dev-subset.txt").write_text("300\tspy films\n2\tNOT a word\n")
    code = "import logging, sys\nfrom pyserini_compneg.topics import read_topics\n"
    code += "print([(one.qid, one.text) for one in read_topics('msmarco-passage-dev-subset')])\n"
    code += "print('torch' in sys.modules, logging.root.handlers)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[('2', 'NOT a word'), ('300', 'spy films')]", "False []"]
    assert done.stderr == "" and logging.root.handlers is not None


def test_a_field_is_for_topics(capsys):
    assert main(["search", "--index", "films", "--query", "spy", "--topic-field", "desc"]) == 2
    assert "error: --topic-field has no use with --query; it is for --topics" in capsys.readouterr().err
