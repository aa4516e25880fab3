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


CDS = '<topic number="1"><note>a</note>text<summary>b</summary></topic>'
ONE = '<topics><topic number="1"><title>{}</title></topic></topics>'
RENAME = "rename it; --on-error skip leaves out the later one"
SGML = "repair it, or remove <?xml ...?> to have the file read like TREC's SGML"
ENTITY = "the file defines the entity 'e', and such entities are not read; write its text in its place"


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
    assert read_topics(path) == [Topic("51", title, Atom(title)), Topic("1", "spy films", Atom("spy films"))]
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
        (WEB, {"field": "desc"}, ":4: the topic has no description; name one of its fields as --topic-field: query"),
        (CDS, {}, ":1: the topic has no title; name one of its fields as --topic-field: note, summary"),
        ("<top><title>spy</top>", {}, """:1: the topic has no number; expected <num>, or <topic number="1">"""),
        (
            "<top><num>1<title>spy</top>\n<top><num>01<title>b</top>",
            {},
            f":2: query id '1' was given on line 1 already; {RENAME}",
        ),
        ("<top>\n<num>1\n<title>spy\n", {}, ":1: a topic that does not end; expected </top>"),
        ("<top>\n<num>1<title>spy\n<top>", {}, ":3: a topic that does not end; expected </top>"),
        ("<top><num>1<title>a</top>\n</top>", {}, ":2: </top> where none is expected"),
        ("<top>\n<!-- <num>1", {}, ":2: a <!-- that does not end"),
        ("<?xml version='1.0'?>\n<topics>\n<topic></topics>", {}, f":3: not well-formed XML: mismatched tag; {SGML}"),
        (f"<!DOCTYPE topics [\n<!ENTITY e 'spy'>]>{ONE.format('&e;')}", {}, f":2: {ENTITY}"),
        (f"<!DOCTYPE topics [\n<!ENTITY e SYSTEM 'e.txt'>]>{ONE.format('&e;')}", {}, f":2: {ENTITY}"),
        ("<topics></topics>", {}, ": no topics; expected lines of qid<TAB>expression, JSON objects, or TREC's <top>"),
        ("1\tspy", {"field": "desc"}, ": has no fields, so --topic-field has no use"),
    ],
)
def test_wrong_topics(write, text, options, said):
    path = write(text)
    assert refusal(read_topics, path, **options) == f"{path}{said}"


@pytest.mark.parametrize("declared", ["", "<?xml version='1.0'?>\n"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ONE.format("the <i>Otter</i> beaver<br/>lake"), [("1", "the Otter beaver lake")]),
        (ONE.format("the <disease>Otter</disease> lake"), [("1", "the Otter lake")]),
        (ONE.format("ot<!-- no <b> part -->ter"), [("1", "otter")]),
        ("<topics><!-- <topic number='9'><title>b</title></topic> -->\n<topic id='2'><title>c</title></topic></topics>",
         [("2", "c")]),
        (ONE.format("<![CDATA[otter & <b> beaver]]>"), [("1", "otter & <b> beaver")]),
        (ONE.format("x &lt; 5 &amp; AT&#38;T"), [("1", "x < 5 & AT&T")]),
        (f"<!DOCTYPE topics SYSTEM 'topics.dtd'>{ONE.format('caf&eacute;')}", [("1", "caf\u00e9")]),
        ("<topics><topic><number>101</number><query>spy</query><desc>x</desc></topic></topics>", [("101", "spy")]),
        ('<topics><topic number="1">a 64-year-old\n <i>man</i></topic></topics>', [("1", "a 64-year-old man")]),
        ("<topics><topic><number>3</number><background>x</background><question>spy</question></topic></topics>",
         [("3", "spy")]),
        ("<queries><query><qid>0001</qid><content>a &amp; b</content></query></queries>", [("1", "a & b")]),
        ("<topics><topic a='b'><identifier>7-AH</identifier><FR-title>b</FR-title></topic></topics>", [("7-AH", "b")]),
    ],
)  # fmt: skip
def test_xml(write, declared, text, expected):
    assert texts(write(declared + text, "topics.xml")) == expected
    loose = f"R&D {text}"  # text outside of the root and an ampersand, so it is no XML
    assert texts(write(f"<!-- -->{loose}", "topics.txt")) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<top>\n<num> 1\n<title> the <i>Otter</i> lake\n<desc> x\n</top>", [("1", "the Otter lake")]),
        ("<top>\n<num> MB001 </num>\n<query> R&D <b> x </query>\n</top>", [("1", "R&D x")]),
        ("<top>\n<num> Number: AR26\n<title> spy\n</top>", [("26", "spy")]),
        ("<top>\n<num> 1\n<title> spy\n<script> x <b>\n</top>", [("1", "spy")]),  # HTML's has no markup within
        ("<top>\n<num> Number: OHSU7\n<title> a\nspy\n</top>", [("OHSU7", "a spy")]),
        ("<DOC>\n<DOCNO> 3 </DOCNO>\n\n spy films;\nPrieve, B.\n</DOC>", [("3", "spy films; Prieve, B.")]),
    ],
)
def test_sgml(write, text, expected):
    assert texts(write(text)) == expected
    assert texts(write(f"{text}\n<!-- {text} -->")) == expected


def test_a_topic_that_is_not_closed_ends_where_the_next_begins(write, caplog):
    path = write("<top>\n<num>1\n<title>spy\n\n<top>\n<num>2\n<title>birds\n</top>")
    assert texts(path) == [("1", "spy"), ("2", "birds")]
    assert caplog.messages == [f"{path}:1: <top> without </top>, so the topic ends at line 5, where the next begins"]


def test_a_topic_that_is_a_document(write, caplog):
    path = write("".join(f"<top>\n<num>{n}</num>\n<docid>d{n}</docid>\n<url>u<url>\n</top>\n" for n in (1, 2)))
    assert texts(path) == [("1", "d1"), ("2", "d2")]
    said = "the topic has only a docid, which is searched as its text, as in Anserini's reader"
    assert caplog.messages == [f"{path}:1: {said}"]


def test_a_number_of_any_length(write):
    assert texts(write(f"<top><num>0{'9' * 5000}<title>spy</top>\n<top><num>00<title>b</top>")) == [
        ("9" * 5000, "spy"),
        ("0", "b"),
    ]


def test_a_title_that_is_no_expression(write):
    path = write("<top>\n<num>1<title>spy NOT (\n</top>")
    assert texts(path) == [("1", "spy NOT (")]
    assert refusal(read_topics, path, "expression", error=QueryError).startswith(f"{path}:1: ")


@pytest.fixture
def pyserini(monkeypatch, tmp_path):
    """Stands in for Pyserini 2's module of topics."""

    def download(url, file, folder):
        if file == "offline":
            raise OSError("no\nroute")
        assert (url, folder) == (f"https://topics/{file}", tmp_path / "cache")
        return tmp_path / file

    known = {name: {"path": file} for name, file in (("msmarco-passage-dev-subset", "dev.tsv"), ("offline", "offline"))}
    base = SimpleNamespace(
        _get_topics_mapping=lambda: known,
        _get_topics_cache_path=lambda: tmp_path / "cache",
        _download_and_cache=download,
        TOPICS_BASE_URL="https://topics/",
    )
    monkeypatch.setattr(named_topics, "_pyserini_search_base", lambda: base)
    (tmp_path / "dev.tsv").write_text("010\tspy NOT comedies\n9\tbirds\n")


def test_topics_by_name(pyserini, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = "msmarco-passage-dev-subset"
    assert texts(name) == texts(tmp_path / "dev.tsv", read="plain") == [("010", "spy NOT comedies"), ("9", "birds")]
    assert [topic.plain for topic in read_topics(name)] == [True] * 2
    assert read_topics(name, "expression")[0].expression == Difference(Atom("spy"), Atom("comedies"))
    said = f"msmarco-passage-dev-subst: no such file, and Pyserini has no topics of that name; nearest: {name}"
    assert refusal(read_topics, "msmarco-passage-dev-subst") == said
    said = "no such file, and Pyserini's topics of a name need a network: no route; give a file of topics"
    assert refusal(read_topics, "offline", error=DownloadError) == f"offline: {said}"
    assert refusal(read_topics, "missing.tsv") == "missing.tsv: no such file"
    (tmp_path / name).write_text("1\tspy\n")  # a file is a file
    assert texts(name) == [("1", "spy")]


def test_pyserinis_own_topics(tmp_path, monkeypatch):
    """Pyserini 1 reads a file beside it without a network. Its module brings neither torch nor a logger."""
    if java_class("org.apache.lucene.util.Version").LATEST.major > 9:
        pytest.skip("Pyserini 2 needs a network")
    (tmp_path / "topics.msmarco-passage.dev-subset.txt").write_text("300\tspy films\n02\tNOT a word\n")
    code = "import logging, sys\nfrom pyserini_compneg.topics import read_topics\n"
    code += "print([(one.qid, one.text) for one in read_topics('msmarco-passage-dev-subset')])\n"
    code += "print('torch' in sys.modules, logging.root.handlers)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[('300', 'spy films'), ('02', 'NOT a word')]", "False []"]
    assert done.stderr == "" and logging.root.handlers is not None


def test_a_field_is_for_topics(capsys):
    assert main(["search", "--index", "films", "--query", "spy", "--topic-field", "desc"]) == 2
    assert "error: --topic-field has no use with --query; it is for --topics" in capsys.readouterr().err
