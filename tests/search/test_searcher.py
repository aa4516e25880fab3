import logging
import math
import os
import pickle
import shlex
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import numpy as np
import pytest
from film_index import build
from lookup_encoder import LookupEncoder
from refusals import refusal

from pyserini_compneg.compose import Damped, Linear, Max, Operators, Product, Sum
from pyserini_compneg.display import explain_query
from pyserini_compneg.display.hit_list import heading
from pyserini_compneg.encode import query_encoder
from pyserini_compneg.expression import Atom, parse
from pyserini_compneg.index import build_index, build_sharded_index
from pyserini_compneg.lucene import MANIFEST_NAME, open_reader
from pyserini_compneg.reading import decompose
from pyserini_compneg.reading.decomposition import Decomposition
from pyserini_compneg.reading.model_reader import PACKAGED
from pyserini_compneg.search import Hit, SearchRequest, SignedImpactSearcher, Total, matches
from pyserini_compneg.search.matches import Counting
from pyserini_compneg.support.errors import ArgumentError, EncodingError, IndexFormatError, QueryError


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return build(tmp_path_factory.mktemp("films"), store_raw=True)


@pytest.fixture(scope="module")
def searcher(index):
    with SignedImpactSearcher(index) as opened:
        yield opened


def docids(hits):
    return [hit.docid for hit in hits]


def test_a_query_as_text_tree_and_composed_query(searcher):
    text = "spy AND comedy NOT animated"
    tree = parse(text)
    (node,) = searcher.compose([text])
    assert isinstance(node, Damped) and isinstance(node.child, Sum)
    assert searcher.search(text) == searcher.search(tree) == searcher.search(node) != []
    assert searcher.compose([node, Atom("spy"), node])[::2] == [node, node]
    assert all(isinstance(hit, Hit) for hit in searcher.search(text))


@pytest.mark.parametrize("threads", [1, 3, 100])
def test_a_batch_is_its_queries(searcher, threads):
    queries = ["spy", "western NOT comedy", Atom("comedy"), Linear({"spy": 1.0, "comedi": -3.0}), "spy AND western"]
    results = searcher.batch_search(queries, [f"q{i}" for i in range(5)], k=3, threads=threads)
    assert list(results) == ["q0", "q1", "q2", "q3", "q4"]
    for query, hits in zip(queries, results.values(), strict=True):
        assert hits == searcher.search(query, k=3)
    assert searcher.batch_search([], []) == {}
    assert searcher.search("spy AND western", k=2**31 - 1)[:3] == hits


def test_each_query_of_a_batch_is_composed_by_itself(searcher):
    reading = Decomposition("spy but not comedy", parse("spy NOT comedy"), (), 0.9)
    queries = ["spy NOT comedy", reading, searcher.compose(["western"])[0], "spy OR western"]
    alone = [searcher.compose([query])[0] for query in queries]
    assert searcher.compose(queries) == alone
    assert [isinstance(node, Damped) for node in alone] == [True, True, False, False]
    assert alone[0] != alone[1]  # what was read has context
    expression, read = searcher.compose(queries[:2], Operators(difference="nrf"))
    assert expression == read


OPERATORS = 'operators must be Operators, such as Operators(difference="nrf"), got {!r}'
FIELDS = "filter fields must be a list of names"
COUNT = "{} must be a whole number from 1, got {!r}"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda s: s.batch_search(["spy"], []), "1 queries need as many distinct qids, got 0"),
        (lambda s: s.batch_search(["spy"], ()), "1 queries need as many distinct qids, got 0"),
        (lambda s: s.batch_search(["spy", "bat"], ["1", "1"]), "2 queries need as many distinct qids, got 1"),
        (lambda s: s.batch_search(["spy"], [["1"]]), "qids must be texts, got ['1']"),
        (lambda s: s.batch_search(["spy", "bat"], [1, "1"]), "2 queries need as many distinct qids, got 1"),
        (lambda s: s.answers(SearchRequest(queries=["spy"], after=None)), "after must be a list, got None"),
        (lambda s: s.answers(["spy"]), "answers takes a SearchRequest, got ['spy']"),
        (
            lambda s: s.answers(SearchRequest(queries=["spy", "bat"], after=[None])),
            "after must have one entry for each of 2 queries, got 1",
        ),
        (
            lambda s: s.answers(SearchRequest(queries=["spy"], counting="exact")),
            "counting must be a Counting or None, got 'exact'",
        ),
        (
            lambda s: s.search(parse("spy"), read=3),
            "read must be one of expression, plain, model, llm, or the folder of a reader, got 3",
        ),
        (lambda s: s.batch_score(["spy"], []), "1 queries need as many lists of docids, got 0"),
        (lambda s: s.explain(7, "d1"), "a query must be a text, an expression, a reading or a composed query, got 7"),
        (lambda s: s.explain("spy", ["d1"]), "explain takes the id of one document, got ['d1']"),
        (lambda s: s.search("spy", operators="nrf"), OPERATORS.format("nrf")),
        (lambda s: s.search("spy", operators={}), OPERATORS.format({})),
        (lambda s: SignedImpactSearcher(s.reader.folder, operators="nrf"), OPERATORS.format("nrf")),
        (lambda s: s.search("spy", "5"), COUNT.format("k", "5")),
        (lambda s: s.batch_search(["spy"], ["1"], 1, 2.0), COUNT.format("threads", 2.0)),
        (lambda s: s.batch_score(["spy"], [["d1"]], 0), COUNT.format("threads", 0)),
        (lambda s: s.matches("spy", threads=0), COUNT.format("threads", 0)),
        (lambda s: s.search("spy", after="d1"), "after must be a hit, a docid and its score, got 'd1'"),
        (
            lambda s: s.search("spy", after=("d1", math.nan)),
            "after must be a hit, a docid and its score, got ('d1', nan)",
        ),
        (lambda s: s.search("spy", True), COUNT.format("k", True)),
        (lambda s: s.batch_search(["spy"], ["1"], filter=[None] * 2), "1 queries need one filter, or as many, got 2"),
        # A text would be taken letter by letter.
        (lambda s: s.score("spy", "d1"), "docids must be a list, got 'd1'"),
        (lambda s: s.score("spy", [39]), "docids must be texts, got 39"),
        (lambda s: s.batch_score(["spy", "war"], ["d1", "d2"]), "docids must be a list, got 'd1'"),
        (lambda s: s.batch_search("spy", ["1", "2", "3"]), "queries must be a list, got 'spy'"),
        (lambda s: s.batch_search(["a", "b"], "12"), "qids must be a list, got '12'"),
        (lambda s: s.compose("spy NOT war"), "queries must be a list, got 'spy NOT war'"),
        (lambda s: s.reader.search("{}", 1), "queries must be a list, got '{}'"),
        (lambda s: s.reader.score([Linear({})], ["d1"]), "docids must be a list, got 'd1'"),
        (lambda s: s.reader.raws("d1"), "docids must be a list, got 'd1'"),
        (lambda s: s.reader.document_frequencies("spy"), "terms must be a list, got 'spy'"),
        (lambda s: s.encoder.encode_batch("spy"), "texts must be a list, got 'spy'"),
        (lambda s: query_encoder("mini", None).encode_batch("spy"), "texts must be a list, got 'spy'"),
        (lambda s: explain_query(s, "spy", "d1"), "docids must be a list, got 'd1'"),
        (lambda s: build_index("x", "y", filter_fields="year"), f"{FIELDS}, got the text 'year'"),
    ],
)
def test_wrong_calls(searcher, call, said):
    with pytest.raises(ArgumentError) as caught:
        call(searcher)
    assert str(caught.value) == said
    assert isinstance(caught.value, TypeError) and isinstance(caught.value, ValueError)


def test_a_closed_searcher_says_so(index):
    searcher = SignedImpactSearcher(index)
    searcher.close()
    searcher.close()
    for call in (searcher.search, lambda query: searcher.explain(query, "d1"), lambda _: searcher.num_docs):
        said = refusal(call, "spy", error=ArgumentError)
        assert said == f"{searcher.reader.folder}: the searcher is closed; open another one"


def test_texts_are_read_as_read_says(searcher, caplog):
    text = "spy NOT comedy"
    assert searcher.search(text, read="plain") == searcher.search(Atom(text)) != searcher.search(text)
    assert searcher.search(text, read="expression") == searcher.search(text)
    wordings = ["spy films but not comedies", "not comedies"]
    found = searcher.batch_search([*wordings, Atom("western")], ["a", "b", "c"], read="model")
    assert found["a"] == searcher.search(decompose(wordings[0])) != searcher.search(wordings[0])
    assert found["b"] == searcher.search(Atom(wordings[1])) and found["c"] == searcher.search("western")
    assert searcher.search(wordings[0], read=PACKAGED) == found["a"]
    said = "text 'not comedies' (it asks for nothing): may be misread; the command read shows how texts are read"
    assert [record.message for record in caplog.records if "misread" in record.message] == [said]
    assert "no way to read texts is named 'plane'" in refusal(
        partial(searcher.search, read="plane"), text, error=QueryError
    )
    said = "read must be one of expression, plain, model, llm, or the folder of a reader, got None"
    assert refusal(partial(searcher.search, read=None), text, error=ArgumentError) == said


def test_a_text_without_an_operator_is_searched_as_it_is(searcher):
    for text in ("Spy Drama (film)", '5" spy', "NOT comedy", "(spy", "spy AND"):
        assert searcher.search(text) == searcher.search(text, read="plain") != []


def test_operators_of_one_call(index, searcher):
    query, operators = "western NOT comedy", Operators(difference="ignore")
    with SignedImpactSearcher(index, operators=operators) as other:
        expected = other.search(query)
        assert expected != searcher.search(query)
        assert searcher.search(query, operators=operators) == expected
        assert searcher.batch_search([query], ["1"], operators=operators) == {"1": expected}
        assert searcher.explain(query, "d5", operators=operators) == other.explain(query, "d5")
        assert searcher.score(query, ["d5"], operators=operators) == other.score(query, ["d5"])


def test_a_warning_shows_no_tree_and_no_endless_text(searcher, caplog):
    node = Max((Linear({f"zebra{number}": 1.0 for number in range(1000)}),) * 2)
    assert searcher.search(node) == searcher.search("zebra " * 1000) == []
    text = "zebra " * 9 + "zeb..."
    assert caplog.messages == [
        "no result for query of composed weights: no document matches",
        f"no result for query {text}: no document has its words",
    ]


def test_shown_scores_are_in_the_unit_of_the_encoder(index, searcher):
    impact_scale = searcher.reader.manifest.impact_scale
    assert searcher.unit("spy") == 100 * impact_scale
    assert searcher.unit(Linear({"spy": 1.0})) == impact_scale
    explanation = searcher.explain("spy AND comedy", "d1")
    shown = explanation.in_unit(searcher.unit("spy AND comedy"))
    assert shown.score == pytest.approx(sum(part.amount for part in shown.contributions))
    assert shown.score * 100 * impact_scale == pytest.approx(explanation.score)


@pytest.mark.parametrize("query", ["zebra", "the", "zebra NOT! spy", "zebra NOT spy"])
def test_unknown_terms_find_nothing_and_are_worth_a_warning(searcher, caplog, query):
    assert searcher.batch_search([query, "spy"], ["7", "8"])["7"] == []
    why = "no document has its words" + ", or NOT takes them away" * (query == "zebra NOT spy")
    found = [(record.levelno, record.getMessage()) for record in caplog.records]
    assert found == [(logging.WARNING, f"no result for query 7: {why}")]


def test_each_query_of_a_batch_has_its_own_reason(searcher, caplog):
    searcher.batch_search(["zebra", "zebra NOT spy", "spy"], ["1", "2", "3"])
    assert caplog.messages == [
        "no result for query 1: no document has its words",
        "no result for query 2: no document has its words, or NOT takes them away",
    ]


def test_an_index_of_another_encoder_is_one_warning(index, caplog):
    encoder = LookupEncoder({"spies": {"##sp": 2.0, "##ies": 1.0}, "fun": {"fun": 2.0}})
    with SignedImpactSearcher(index, encoder) as searcher:
        assert searcher.batch_search(["spies AND fun", "fun NOT spies"], ["1", "2"]) == {"1": [], "2": []}
    assert caplog.messages == [
        "2 of 2 queries, such as 1 (term '##sp'): no result, for the index has none of their terms; it was probably "
        "made with another encoder, so name that one as --encoder"
    ]


def test_atoms_encoded_elsewhere(index, tmp_path):
    stock = tmp_path / "stock"
    stock.mkdir()
    for path in index.iterdir():
        if path.name not in (MANIFEST_NAME, "write.lock"):
            (stock / path.name).write_bytes(path.read_bytes())
    atoms = tmp_path / "atoms.jsonl"
    atoms.write_text('{"text": "agents", "vector": {"spy": 2}}\n{"text": "fun", "vector": {"comedi": 1}}\n')
    with SignedImpactSearcher(stock, str(atoms)) as searcher:
        assert (searcher.unit("agents"), searcher.unit(Linear({"spy": 1.0}))) == (100.0, 1.0)
        assert heading("agents", searcher) == "agents  (scores in impacts: the index does not say their scale)"
        assert docids(searcher.search("agents NOT fun"))[0] == "d2"
        message = refusal(searcher.search, "agents NOT horses", error=EncodingError)
        assert message == f"{atoms} has no vector for 'horses'; encode it and add a line"
    with SignedImpactSearcher(stock) as searcher:
        assert searcher.search(Product(({"spy": 1.0}, {"comedi": 1.0})))
        message = refusal(searcher.search, "agents", error=IndexFormatError)
        assert message == f"{stock}: has no compneg.json (stock Anserini built it), so name the --encoder"
    with pytest.raises(IndexFormatError):
        SignedImpactSearcher(index, str(atoms))


@pytest.mark.parametrize("threads", [1, 3])
def test_java_names_the_query_that_fails(searcher, monkeypatch, threads):
    searches, search = [], searcher.reader.search
    monkeypatch.setattr(
        searcher.reader, "search", lambda *options, **more: searches.append(options) or search(*options, **more)
    )
    beyond = Product(({"western": 1e18},) * 3, 1.0)
    with pytest.raises(IndexFormatError, match=r"^query q2: .*: cannot be searched: a score is beyond 3.4e38: "):
        searcher.batch_search([Linear({"western": 1.0}), beyond, beyond], ["q1", "q2", "q3"], threads=threads)
    assert len(searches) == 1


def test_a_replaced_index_is_seen_when_it_is_opened_again(tmp_path):
    index = build(tmp_path)
    other = tmp_path / "other.jsonl"
    other.write_text('{"id": "new", "contents": "a spy in another index"}\n')
    with SignedImpactSearcher(index) as searcher:
        before = searcher.search("spy")
        assert not searcher.reopen()
        build_index(other, index, existing="overwrite")
        assert searcher.search("spy") == before  # of the index that was opened
        assert searcher.reopen()
        assert docids(searcher.search("spy")) == ["new"]
        assert searcher.num_docs == 1
        assert not searcher.reopen()
        (index / MANIFEST_NAME).write_text("{")
        (index / "segments_9").touch()
        with pytest.raises(IndexFormatError):
            searcher.reopen()
        assert docids(searcher.search("spy")) == ["new"]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare, to mount something")
def test_an_index_on_a_read_only_mount(index, tmp_path):
    """As root or in a name space of its own, where this process is allowed to mount."""
    commands = (["search", "--index", index, "--query", "spy"], ["index", "--verify", index])
    for command in commands:
        words = shlex.join(map(str, [sys.executable, "-m", "pyserini_compneg", *command]))
        script = f"mount --bind -o ro {index} {index} && ! touch {index}/x 2> {tmp_path}/said && {words}"
        pipes = {"capture_output": True, "text": True}
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        ended = subprocess.run(["unshare", "--mount", "--map-root-user", "sh", "-c", script], env=environment, **pipes)
        if "unshare:" in ended.stderr or "mount:" in ended.stderr:
            pytest.skip("nothing may be mounted here")
        assert ended.returncode == 0, ended.stderr
    assert not any(path.name.endswith(".lock") for path in index.iterdir() if path.name != "write.lock")


@pytest.fixture(scope="module", params=["whole", "passages", "shards"])
def form(request, tmp_path_factory):
    if request.param != "shards":
        options = {"passages": {"words": 3, "overlap": 0}} if request.param == "passages" else {}
        return build(tmp_path_factory.mktemp(request.param), **options)
    source = tmp_path_factory.mktemp("shards")
    build(source)
    build_sharded_index(source / "films.jsonl", source / "sharded", 2)
    return source / "sharded"


SETTINGS = {"operators": Operators(difference="nrf"), "weight_scale": 50.0, "min_idf": 0.0}


@pytest.mark.parametrize("encoder", [None, "bm25", LookupEncoder({"spy": {"spy": 1.0}, "comedy": {"comedi": 1.0}})])
def test_a_pickled_searcher_opens_its_index_again(form, encoder, monkeypatch):
    monkeypatch.chdir(form.parent)
    with SignedImpactSearcher(form.name, encoder, **SETTINGS) as searcher:
        before, hits = pickle.dumps(searcher), searcher.search("spy NOT comedy")
        after = pickle.dumps(searcher)
    monkeypatch.chdir("/")
    for packed in (before, after):
        with pickle.loads(packed) as copy:
            assert copy.search("spy NOT comedy") == hits != []
            assert copy.settings == searcher.settings


def test_a_searcher_is_passed_to_another_process(searcher):
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        assert pool.submit(searcher.search, "spy NOT comedy").result() == searcher.search("spy NOT comedy")


def test_what_cannot_be_pickled(index):
    encoder = LookupEncoder({"spy": {"spy": 1.0}})
    encoder.lock = threading.Lock()
    remedies = "name an encoder", "give it the folder of an index"
    for opened, given, remedy in zip((index, open_reader(index)), (encoder, None), remedies, strict=True):
        with SignedImpactSearcher(opened, given) as searcher:
            said = refusal(pickle.dumps, searcher, error=ArgumentError)
            assert "cannot be pickled" in said
            assert said.endswith(f"; {remedy}, or open a searcher in each process")


@pytest.mark.parametrize("k", [1, 2, 3, 99])
def test_a_query_does_not_find_the_document_with_its_id(form, k):
    queries = {"d1": "spy", "d4": "spy", "no document": "spy NOT comedy", "d3": "western OR comedy"}
    with SignedImpactSearcher(form) as searcher:
        found = searcher.batch_search(list(queries.values()), list(queries), 100)
        rest = searcher.batch_search(list(queries.values()), list(queries), k, remove_query=True)
    assert rest == {qid: [hit for hit in hits if hit.docid != qid][:k] for qid, hits in found.items()}
    assert "d1" in docids(found["d1"]) and len(rest["d1"]) == min(k, 2)


@pytest.mark.parametrize("few", [1 << 16, -1])
@pytest.mark.parametrize("remove_query", [False, True])
def test_the_total_is_that_of_all_pages(searcher, few, remove_query, monkeypatch):
    monkeypatch.setattr(matches, "_FEW_POSTINGS", few)  # below them, totals are exact
    matching = [hit.docid for hit in searcher.search("spy OR war", 99)]
    expected = Total(len(matching) - remove_query, "eq")
    for offset in range(len(matching) + 3):
        how = {"counting": Counting(), "remove_query": remove_query}
        request = SearchRequest(queries=["spy OR war"], qids=matching[:1], k=2, offset=offset, **how)
        (answer,) = searcher.answers(request)
        assert [hit.docid for hit in answer.hits] == matching[remove_query:][offset : offset + 2]
        is_bound = few < 0 and offset + 2 <= expected.value
        assert answer.matches.total == expected or (is_bound and offset + 2 <= answer.matches.total.value)
        assert answer.matches.total.value <= len(matching)


def test_lists_of_a_request_may_be_of_any_kind(searcher):
    whole = searcher.search("spy OR war", 99)
    qids = np.array(["a", "b"])
    found = searcher.batch_search(iter(["spy OR war"] * 2), qids, 9, after=iter([None, whole[0]]))
    assert list(found.values()) == [whole, whole[1:]]
    assert [one.qid for one in searcher.answers(SearchRequest(queries=["spy"], qids=np.array(["7"])))] == ["7"]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (None, "a method must give a list of hits for each qid, as {qid: [Hit(docid, score), ...]}, got None"),
        (
            {"spy": 5},
            "a method must give a list of hits for each qid, as {qid: [Hit(docid, score), ...]}, got {'spy': 5}",
        ),
        ({"spy": ["d1"]}, "a method must give hits, such as Hit(docid, score), got 'd1'"),
        ({"bat": []}, "the method has hits for the qid 'bat', which the request does not have"),
    ],
)
def test_what_a_method_gives_is_checked(searcher, found, said):
    class Own:
        def answer(self, searcher, request):
            return found

    assert refusal(searcher.search, "spy", method=Own(), error=ArgumentError) == said


def test_answers_behind_a_hit(searcher):
    whole = searcher.search("spy OR war", 99)
    for offset in (0, 1):  # without it, a total is counted, as it is not known how many hits came before
        how = {"after": whole[:1], "offset": offset, "counting": Counting("exact")}
        (answer,) = searcher.answers(SearchRequest(queries=["spy OR war"], k=9, **how))
        assert list(answer.hits) == whole[1:]
        assert answer.matches.total == Total(len(whole), "eq")
    two = partial(SearchRequest, queries=["spy", "war"])
    said = "with offset, either all queries have a hit in after, or none"
    assert refusal(two, offset=1, after=[whole[0], None], error=ArgumentError) == said
    for offset in (-1, "1", None, True):
        said = f"offset must be a whole number from 0, got {offset!r}"
        assert refusal(two, offset=offset, error=ArgumentError) == said
