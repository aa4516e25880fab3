import json

import pytest
from refusals import refusal

from pyserini_compneg.expression import Atom, Difference, Intersection, Union
from pyserini_compneg.support.errors import QueryError
from pyserini_compneg.topics.topics import Topic, read_topics

TEXTS = "query, text, title, question, query_txt"
NO_QUERY = f"no query; expected one of the fields vector, score, expression, original_query with <mark>, {TEXTS}"
RENAME = "rename it; --on-error skip leaves out the later one"
BIRDS, BATS = Atom("birds"), Atom("bats")


@pytest.fixture
def topics_of(tmp_path):
    def read(*lines, read=None):
        path = tmp_path / "topics"
        path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
        return read_topics(path, read)

    read.path = tmp_path / "topics"
    return read


def test_tsv(topics_of):
    assert topics_of("1\tbirds NOT bats", "", "q2\tbirds of (Fiji)", read="plain") == [
        Topic("1", "birds NOT bats", Atom("birds NOT bats")),
        Topic("q2", "birds of (Fiji)", Atom("birds of (Fiji)")),
    ]
    assert topics_of("1\tbirds NOT bats") == [Topic("1", "birds NOT bats", Difference(BIRDS, BATS))]


@pytest.mark.parametrize("header", ["id\texpression", "qid\tquery", "QID\tText"])
def test_a_line_that_looks_like_a_header_is_said_once(topics_of, caplog, header):
    assert len(topics_of(header, "1\tbirds", "2\tquery")) == 3
    said = "looks like a header, and is searched as a query; remove the line if it is one"
    assert caplog.messages == [f"{topics_of.path}:1: {said}"]


@pytest.mark.parametrize("field", ["id", "qid", "_id", "query_id", "question_id"])
def test_json_expression_as_text_and_as_tree(topics_of, field):
    assert topics_of(
        {field: "a", "expression": "birds AND bats"}, {field: 2, "expression": {"union": ["birds", "bats"]}}
    ) == [
        Topic("a", "birds AND bats", Intersection((BIRDS, BATS))),
        Topic("2", "birds OR bats", Union((BIRDS, BATS))),
    ]


@pytest.mark.parametrize("field", ["query", "text", "title", "question", "query_txt"])
@pytest.mark.parametrize("read", [None, "plain"])
def test_plain_text_is_not_parsed(topics_of, field, read):
    text = 'birds NOT (bats AND "'
    assert topics_of({"id": "1", field: text}, read=read) == [Topic("1", text, Atom(text))]


@pytest.mark.parametrize(
    "line", ["1\tbirds NOT bats", *({"id": 1, f: "birds NOT bats"} for f in ("expression", "query", "text"))]
)
def test_one_reading_holds_for_all_texts(topics_of, line):
    text = "birds NOT bats"
    assert topics_of(line, read="expression") == [Topic("1", text, Difference(BIRDS, BATS))]
    assert topics_of(line, read="plain") == [Topic("1", text, Atom(text))]
    composed = {"id": "1", "contents": "A", "vector": {"a": 1}}
    assert topics_of(composed, read="plain") == topics_of(composed, read="expression") == topics_of(composed)


def quest(**more):
    return {
        "query": "birds that are not bats",
        "original_query": "<mark>birds</mark> that are not <mark>bats</mark>",
        "docs": ["Emu"],
        "metadata": {"template": "_ that are not _"},
        **more,
    }


def test_quest_lines_have_their_number_as_id(topics_of):
    group = "_ that are not _"
    assert topics_of(quest(), quest(qid="x")) == [
        Topic("1", "birds that are not bats", Difference(BIRDS, BATS), group=group),
        Topic("x", "birds that are not bats", Difference(BIRDS, BATS), group=group),
    ]
    assert topics_of(quest(), read="expression") == topics_of(quest())
    assert topics_of(quest(), read="plain") == [
        Topic("1", "birds that are not bats", Atom("birds that are not bats"), group=group)
    ]


def test_metadata_are_texts(topics_of):
    metadata = {"domain": "animals", "template": "_ that are not _", "fluency": [True], "votes": 3}
    for read in (None, "plain"):
        (topic,) = topics_of(quest(metadata=metadata), read=read)
        assert (topic.group, topic.metadata) == ("_ that are not _", {"domain": "animals"})
    assert topics_of({"id": "1", "vector": {"a": 1}, "metadata": metadata})[0].metadata == {"domain": "animals"}
    assert topics_of({"id": "1", "text": "a", "metadata": None})[0].metadata == {}


def test_composed_queries_are_kept_as_they_are(topics_of):
    tree = {"max": [{"vector": {"a": 1}}, {"vector": {"b": 2}}]}
    assert topics_of({"id": "1", "contents": "A", "vector": {"a": -3}}, {"id": "2", "score": tree}) == [
        Topic("1", "A", composed={"vector": {"a": -3}}),
        Topic("2", "", composed=tree),
    ]


@pytest.mark.parametrize("read", [None, "plain"])
@pytest.mark.parametrize("line", ["7\tbirds", {"id": 7, "query": "birds"}, {"id": 7, "expression": "birds"}])
def test_a_topic_knows_its_line(topics_of, line, read):
    assert [topic.source for topic in topics_of("", line, read=read)] == [f"{topics_of.path}:2"]
    assert topics_of({"id": 7, "vector": {"a": 1}})[0].source == f"{topics_of.path}:1"


def test_precedence_of_fields(topics_of):
    record = quest(id="1", expression="bats", vector={"a": 1})
    assert topics_of(record)[0].composed == {"vector": {"a": 1}}
    del record["vector"]
    assert topics_of(record)[0].expression == BATS
    del record["expression"]
    assert topics_of(record)[0].expression == Difference(BIRDS, BATS)
    for without_marks in ("no marks", "", " ", None):
        record["original_query"] = without_marks
        assert topics_of(record)[0].expression == Atom("birds that are not bats")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["1 birds"], ":1: expected qid<TAB>expression, or a JSON object a line; found no tabs"),
        (['[{"id": 1}]'], f": topic 1: {NO_QUERY}"),
        (["[1]"], ": topic 1: expected a JSON object, got a whole number"),
        (["1\tbirds", "", "1\tbats"], f":3: query id '1' was given on line 1 already; {RENAME}"),
        (
            ['[{"id": 1, "text": "a"}, {"qid": "1", "text": "a"}]'],
            f": topic 2: query id '1' was given in topic 1 already; {RENAME}",
        ),
        (["1:birds", "2\tbats"], ":2: expected id:text, as on the first line"),
        (["1:1:birds", "2:bats"], ":2: expected id:priority:text, as on the first line"),
        (["a b\tbirds"], ":1: the query id 'a b' has white space, which a TREC run cannot hold"),
        (["1\t "], ":1: the expression is blank"),
        (["\tbirds"], ":1: the query id is blank"),
        ([{"id": "", "query": "a"}], ":1: the query id is blank"),
        ([{"id": 1.5, "query": "a"}], ":1: the query id must be a text or a whole number, got 1.5"),
        ([{"query": "a"}], ":1: no query id; expected one of the fields id, qid, _id, query_id, question_id"),
        ([{"id": 1, "query": " "}], ":1: the query is blank"),
        ([{"id": 1, "query": 7}], ":1: `query` must be a text, got a whole number"),
        ([{"id": 1, "query": "a", "original_query": ["b"]}], ":1: `original_query` must be a text, got a list"),
        ([{"id": 1, "vector": [1]}], ":1: `vector` must be a JSON object, got a list"),
        ([{"id": 1, "vector": {}, "score": {}}], ":1: `vector` and `score` are two composed queries; leave out one"),
        (['{"id": 1, "score": {"vector": {"a": 1, "a": 1}}}'], ":1: the key 'a' is given twice"),
        ([{"id": 1, "name": "a"}], f":1: {NO_QUERY}"),
        ([{"id": 1, "query": "a"}, "2\tb"], ":2: not valid JSON: Extra data at column 3"),
        ([], ": no topics; expected lines of qid<TAB>expression, JSON objects, or TREC's <top>"),
    ],
)
def test_collection_errors(topics_of, lines, expected):
    assert refusal(topics_of, *lines) == f"{topics_of.path}{expected}"


def test_plain_needs_text(topics_of):
    said = refusal(lambda: topics_of({"id": 1, "expression": {"union": ["a", "b"]}}, read="plain"))
    assert said == f"{topics_of.path}:1: no plain text; expected one of the fields {TEXTS}, expression"


def test_syntax_errors_keep_their_caret(topics_of):
    with pytest.raises(QueryError) as caught:
        topics_of("1\tbirds", "2\tbirds AND (")
    first, text, caret = str(caught.value).splitlines()
    assert first.startswith(f"{topics_of.path}:2: ")
    assert text.endswith("birds AND (")
    assert caret.endswith("^")
    assert caught.value.message.endswith("; for plain words, use quotes or --read plain (read=plain)")
    message = refusal(topics_of, {"id": 1, "expression": {"union": ["birds"]}}, error=QueryError)
    assert message.startswith(f"{topics_of.path}:1: `expression`: $.union: ")


@pytest.mark.parametrize("given", [{}, {"expression": BIRDS, "composed": {"vector": {"a": 1}}}])
def test_a_topic_has_one_way_to_be_answered(given):
    with pytest.raises(ValueError, match="topic '1' needs either an expression or a composed query"):
        Topic("1", "birds", **given)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["7:spy films: a list", "10:birds"], [("7", "spy films: a list"), ("10", "birds")]),
        (["7:1:spy films", "010:4:birds"], [("7", "spy films"), ("010", "birds")]),
        (["enwiki:Emu/Food%20%26%20water"], [("enwiki:Emu/Food%20%26%20water", "Emu/Food & water")]),
        (["Emu/Food%20of", "Emu"], [("Emu/Food%20of", "Emu/Food of"), ("Emu", "Emu")]),
        (["who is it\t['A', 'B']", 'what?\t"[\'C\', ""D""]"'], [("0", "who is it"), ("1", "what?")]),
        ([{"question": "who?", "answer": ["A"]}, {"question": "b?", "answer": []}], [("0", "who?"), ("1", "b?")]),
        (["[", '{"question_id": "CQ001", "question": "who?",', '"query": "spy"}]'], [("CQ001", "spy")]),
        (["010\tbirds", "10\tbats"], [("010", "birds"), ("10", "bats")]),
        ([{"id": "010", "title": "birds"}, {"id": "10", "title": "bats"}], [("010", "birds"), ("10", "bats")]),
    ],
)
def test_other_forms_are_plain_text(topics_of, lines, expected):
    assert [(topic.qid, topic.text) for topic in topics_of(*lines, read="plain")] == expected
    if "\t" not in str(lines[0]) or "[" in lines[0]:
        assert [topic.plain for topic in topics_of(*lines)] == [True] * len(expected)


def test_the_field_of_json_topics(topics_of):
    topics_of({"id": 1, "title": "a", "desc": "NOT b", "vector": {"a": 1}, "votes": 3})
    (topic,) = read_topics(topics_of.path, field="desc")
    assert (topic.text, topic.plain) == ("NOT b", True)
    said = "the topic has no narr; name one of its fields as --topic-field: title, desc"
    assert refusal(read_topics, topics_of.path, field="narr") == f"{topics_of.path}:1: {said}"


def test_further_columns_are_left_out_with_one_warning(topics_of, caplog):
    topics = topics_of("1\tbirds", "2\tbats\t3\tx", "3\temus\t")
    assert [topic.text for topic in topics] == ["birds", "bats", "emus"]
    said = "1 lines have more than two columns, and only the first two are read, as in Anserini"
    assert caplog.messages == [f"{topics_of.path}:2: {said}"]


def test_a_repeated_id_is_left_out(topics_of, caplog):
    topics_of.path.write_text("1\tbirds\n1\tbats\n2\temus\n")
    assert [topic.text for topic in read_topics(topics_of.path, skip=True)] == ["birds", "emus"]
    assert caplog.messages == [f"{topics_of.path}:2: query id '1' was given on line 1 already; rename it; left out"]


def test_topics_of_the_web_tracks_may_be_windows_1252(topics_of, caplog):
    topics_of.path.write_bytes("1:birds\n2:caf\u00e9 \u2019s\n".encode("cp1252"))
    assert [topic.text for topic in read_topics(topics_of.path)] == ["birds", "caf\u00e9 \u2019s"]
    assert caplog.messages == [f"{topics_of.path}:2: 1 lines are not UTF-8 text, and are read as Windows-1252"]
    topics_of.path.write_bytes("1\tcaf\u00e9\n".encode("cp1252"))
    assert "not UTF-8 text" in refusal(read_topics, topics_of.path)
