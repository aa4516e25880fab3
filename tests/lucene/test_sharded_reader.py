"""An index in shards answers as one index of all documents does, to the last bit."""

import itertools
import json
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from impact_indexes import pairs
from json_lines import write_jsonl
from random_searches import TERMS, trees
from refusals import refusal

from pyserini_compneg import Operators, SignedImpactSearcher
from pyserini_compneg.compose import DIFFERENCES, INTERSECTIONS, UNIONS, Excluding, Linear
from pyserini_compneg.expression import Filter
from pyserini_compneg.expression.filters import as_sort
from pyserini_compneg.index import build_index, build_sharded_index, update_index
from pyserini_compneg.lucene import SHARDS_NAME, ImpactReader, ShardedReader, open_reader
from pyserini_compneg.lucene.cancellation import Cancellation
from pyserini_compneg.lucene.passage_reader import PassageReader
from pyserini_compneg.lucene.reader import QueryFailure
from pyserini_compneg.lucene.requests import ComposedSearch
from pyserini_compneg.lucene.shards import Shard
from pyserini_compneg.support.errors import ArgumentError, IndexFormatError, IndexReadError, SearchCancelled
from pyserini_compneg.topics.topic_runs import search_topics
from pyserini_compneg.topics.topics import read_text

SHARDS = (1, 2, 3, 7)
FIELDS = ["genre", "year"]
LETTERS = "aZé😀\uffee"
A, WAR = Linear({"a": 1.0}), Linear({"war": 1.0})


def documents():
    """97 documents, many of them alike, some without terms; the first alone have a genre and a year."""
    choice = random.Random(3)
    vectors = [{term: choice.choice([1, 2, 3, 255, 70_000]) for term in choice.sample(TERMS, 4)} for _ in range(9)]
    for number in range(97):
        vector = choice.choice(vectors) if number % 11 else {}
        fields = {"genre": choice.choice(["war", "spy"]), "year": 1990 + number} if number < 3 else {}
        yield {"id": choice.choice(LETTERS) + str(number), "vector": vector, **fields}


@pytest.fixture(scope="module")
def readers(tmp_path_factory):
    """One index, and the same documents in shards."""
    folder = tmp_path_factory.mktemp("shards")
    collection = write_jsonl(folder / "documents.jsonl", *documents())
    options = {"encoder": "vectors", "filter_fields": FIELDS, "store_raw": True}
    build_index(collection, folder / "one", **options)
    for count in SHARDS:
        build_sharded_index(collection, folder / f"of{count}", count, **options)
    with ImpactReader(folder / "one") as one:
        yield [one, *(open_reader(folder / f"of{count}") for count in SHARDS)]


def plain(rankings):
    return [(ranking.docids, list(ranking.scores)) for ranking in rankings]


FILTERS = st.sampled_from(
    [
        None,
        Filter({"genre": "war"}),
        Filter({"year": "1991.."}),
        Filter({"id": ["a1", "none"], "genre": ["spy", "war"]}),
    ]
)
EXCLUDED = st.sampled_from([Filter({"genre": "war"}), Filter({"year": "..1990"})])


@given(st.lists(trees(EXCLUDED), min_size=1, max_size=3), st.sampled_from([1, 2, 10, 1000]), FILTERS, st.integers(1, 2))
def test_rankings_scores_and_explanations(readers, nodes, k, only, threads):
    one, *sharded = readers
    filters = [only] * len(nodes)
    wanted = one.search(nodes, k, threads, filters)
    docids = [document["id"] for document in itertools.islice(documents(), 20)] + ["none"]
    scores = one.score(nodes, [docids] * len(nodes))
    explained = [one.explain(node, docids[0], only) for node in nodes]
    last = [pairs(ranking)[-1] if ranking.docids else None for ranking in wanted]
    behind = one.search(nodes, k, threads, filters, after=last)
    facets = {"genre": k, "year": 2}
    counted = one.matches(nodes, filters, facets, threads)
    for reader in sharded:
        assert plain(reader.search(nodes, k, threads, filters)) == plain(wanted)
        assert plain(reader.search(nodes, k, threads, filters, after=last)) == plain(behind)
        assert repr(reader.matches(nodes, filters, facets, threads)) == repr(counted)
        assert reader.score(nodes, [docids] * len(nodes)) == scores
        assert [reader.explain(node, docids[0], only) for node in nodes] == explained


def test_statistics_and_documents(readers):
    one, *sharded = readers
    known = [document["id"] for document in documents()]
    some, none = Filter({"id": ["none", *known[:50:7], "other"]}), Filter({"genre": "wars"})
    for reader in sharded:
        assert (reader.document_count, reader.field_document_count) == (97, one.field_document_count)
        assert reader.document_frequencies(TERMS) == one.document_frequencies(TERMS)
        assert reader.document_frequencies([]) == []
        assert [reader.raw(docid) for docid in known] == [one.raw(docid) for docid in known]
        assert (reader.has(known[5]), reader.has("none"), reader.raw("none")) == (True, False, None)
        assert reader.filtered(some)[:3] == one.filtered(some)[:3]
        assert reader.filtered(none).values == one.filtered(none).values == {"genre": ["spy", "war"]}
        assert reader.manifest == one.manifest
        assert not reader.lost and not reader.is_replaced()
        assert reader.score([A], [["none"]]) == [[math.inf]]


def test_what_cannot_be_asked_is_said_of_the_whole(readers):
    """Also of fields that are in one shard only."""
    wrong = {
        "actor": "it has no filter field 'actor', only genre, year",
        "genre": "the filter field 'genre' has no numbers and no dates, so there is no range 1990..",
        "year": "the filter field 'year' has no text 1990..x, which is no range either; "
        "write a range as 1990..1999, 1990.. or ..1999",
    }
    for reader in readers:
        assert reader.filtered(Filter({"genre": "1990..x"})).allowed == 0
        for field, message in wrong.items():
            filter = Filter({field: ["1990..", "1990..x"]})
            for ask in (reader.filtered, lambda asked, r=reader: r.explain(A, "none", asked)):
                with pytest.raises(IndexFormatError) as refused:
                    ask(filter)
                assert str(refused.value) == f"{reader.folder}: cannot be filtered: {message}"
        with pytest.raises(QueryFailure) as refused:
            reader.search([A, Excluding(A, (Filter({"actor": "x"}),), (0.0,))], 1)
        assert str(refused.value) == f"{reader.folder}: cannot be searched: {wrong['actor']}"
        assert refused.value.position == 1


def test_a_shard_without_documents_hides_no_fault(tmp_path):
    lines = [{"id": name, "vector": {"a": 1}, "year": 1990, "genre": "war"} for name in "ab"]
    build_sharded_index(write_jsonl(tmp_path / "d", *lines), tmp_path / "i", 2, encoder="vectors", filter_fields=FIELDS)
    update_index(tmp_path / "i", delete=["b"])
    with open_reader(tmp_path / "i") as reader:
        for asked in ({"year": "1990..x"}, {"genre": "1990.."}):
            with pytest.raises(IndexFormatError):
                reader.filtered(Filter(asked))
        assert reader.filtered(Filter({"year": "1990.."})).allowed == 1


def test_every_reader_refuses_a_text_in_place_of_a_composed_query(readers):
    for reader in (*readers, PassageReader(readers[0])):
        for ask in (
            lambda text, r=reader: r.search([A, text], 1),
            lambda text, r=reader: r.matches([text]),
            lambda text, r=reader: r.score([text], [["none"]]),
            lambda text, r=reader: r.explain(text, "none"),
        ):
            said = refusal(ask, "a NOT b", error=ArgumentError)
            assert said == "a reader takes composed queries, got 'a NOT b'; compose it"


@pytest.mark.parametrize("name, given", [("filters", [None]), ("thresholds", [0.5, 0.5, 0.5])])
def test_each_query_has_a_filter_and_a_threshold_or_none_has(readers, name, given):
    for reader in readers:
        with pytest.raises(ArgumentError) as refused:
            reader.search([A] * 2, 1, **{name: given})
        assert str(refused.value) == f"{name} must have one entry for each of 2 queries, got {len(given)}"


def test_later_shards_are_told_what_score_counts(readers, monkeypatch):
    """So they have less to do; what they leave out could not be found."""
    asked = []
    reader = readers[1 + SHARDS.index(3)]
    answers = Shard.ask

    def ask(self, question, *args, **kwargs):
        if question is ImpactReader.find:
            asked.append(args[0].thresholds[0])
        return answers(self, question, *args, **kwargs)

    monkeypatch.setattr(Shard, "ask", ask)
    (best,) = reader.search([Linear({"a": 1.5})], 2)
    assert asked[0] == -math.inf
    assert -math.inf < asked[1] <= asked[2] <= best.scores[-1]


TEXTS = [
    "spy comedy war",
    "spy drama",
    "war film of spies",
    "comedy of a war",
    "drama",
    "western comedy",
    "spy",
    "war spy",
]


def test_every_operator_with_bm25(tmp_path):
    """Average length and document frequencies are those of all documents, and so is the best score for ``damped``."""
    films = [{"id": f"d{i}", "contents": TEXTS[i % len(TEXTS)] + " film" * (i % 3)} for i in range(40)]
    collection = write_jsonl(tmp_path / "films.jsonl", *films)
    build_index(collection, tmp_path / "one")
    whole = build_sharded_index(collection, tmp_path / "shards", 7)
    assert whole.documents == 40
    queries = ["spy AND comedy NOT war", "(spy OR drama) NOT comedy", "spy NOT! war", "war NOT (spy AND comedy)"]
    strict = ["spy AND! comedy", "war film AND! spy film NOT comedy"]
    chosen = [Operators(difference=name) for name in DIFFERENCES] + [Operators(union=name) for name in UNIONS]
    chosen += [Operators(intersection=name) for name in INTERSECTIONS]
    with SignedImpactSearcher(tmp_path / "one") as one, SignedImpactSearcher(tmp_path / "shards") as several:
        assert several.reader.manifest == one.reader.manifest
        for operators in chosen:
            is_vanilla = "vanilla" in (operators.intersection, operators.difference)  # which no AND! can be
            asked = queries if is_vanilla else queries + strict
            for k in (10, 1000):
                wanted = one.batch_search(asked, list("abcdef")[: len(asked)], k, operators=operators)
                assert several.batch_search(asked, list("abcdef")[: len(asked)], k, operators=operators) == wanted
            assert several.compose(asked, operators) == one.compose(asked, operators)


@pytest.fixture
def index(tmp_path):
    collection = write_jsonl(tmp_path / "films.jsonl", *({"id": f"d{i}", "contents": TEXTS[i]} for i in range(6)))
    build_sharded_index(collection, tmp_path / "index", 3)
    return tmp_path / "index"


def changed(index, change):
    """Changes the list of the shards."""
    values = json.loads((index / SHARDS_NAME).read_text())
    change(values)
    (index / SHARDS_NAME).write_text(json.dumps(values))


def put_away(index):
    """Renames the second shard."""
    shard = index / "shard-00001-of-00003"
    return shard.rename(index.parent / "away")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda list_: list_.update(format_version=2), "{list}: format version 2, but this release reads 1; upgrade"),
        (lambda list_: list_["shards"].clear(), "{list}: bad value for 'shards': []; build the index again"),
        (lambda list_: list_["shards"].append(7), "{list}: bad value for 'shards': ["),
        (lambda list_: list_.update(more=1), "{list}: unknown key 'more'; it was written by another release"),
        (lambda list_: list_["shards"][1].pop("path"), "{list}: shard 1: the key 'path' is missing; build the index "),
        (
            lambda list_: list_["shards"][1].update(documents=-1),
            "{list}: shard 1: bad value for 'documents': -1; build",
        ),
        (
            lambda list_: list_["shards"].append(list_["shards"][0]),
            "{list}: names the shard of path 'shard-00000-of-00003' twice; keep one of them",
        ),
        (
            lambda list_: list_["shards"].append({**list_["shards"][0], "path": "./shard-00000-of-00003"}),
            "{list}: names the shard of checksum '",
        ),
        (
            lambda list_: list_["shards"][2].update(checksum="0"),
            "{index}/shard-00002-of-00003: the shard is not the one that compneg-shards.json names; ",
        ),
        (
            lambda list_: list_["shards"].pop(),
            "{list}: its shards have 4 documents, and the index 6; a shard is missing; ",
        ),
        (lambda list_: list_["shards"][1].update(path="a\0b"), "{list}: shard 1: bad value for 'path': 'a\\x00b'; "),
        (
            lambda list_: list_["shards"][2].update(documents=99) or list_.update(documents=4 + 99),
            "{index}/shard-00002-of-00003: the shard has not the 99 documents of compneg-shards.json; ",
        ),
    ],
)
def test_a_damaged_list_is_refused(index, change, message):
    changed(index, change)
    with pytest.raises(IndexReadError) as refused:
        open_reader(index)
    assert str(refused.value).startswith(message.format(list=index / SHARDS_NAME, index=index))
    assert "\n" not in str(refused.value)


def test_shards_of_another_scale_are_refused(index, tmp_path):
    films = write_jsonl(tmp_path / "films.jsonl", *({"id": f"d{i}", "contents": TEXTS[i]} for i in range(6)))
    build_sharded_index(films, tmp_path / "other", 3, impact_scale=100)
    put_away(index)
    (tmp_path / "other" / "shard-00001-of-00003").rename(index / "shard-00001-of-00003")
    other = json.loads((tmp_path / "other" / SHARDS_NAME).read_text())["shards"][1]
    changed(index, lambda list_: list_["shards"].__setitem__(1, other))
    names = "shard-00000-of-00003 and shard-00001-of-00003"
    with pytest.raises(IndexReadError) as refused:
        open_reader(index)
    assert str(refused.value) == (
        f"{index}: its shards {names} differ in impact_scale: 256.0 and 100; build the index again"
    )


def test_a_shard_that_is_gone_is_an_error_or_said(index, caplog, capsys):
    put_away(index)
    with pytest.raises(IndexReadError) as refused:
        open_reader(index)
    assert str(refused.value) == f"{index}/shard-00001-of-00003: the shard cannot be read: no such file or directory"
    with open_reader(index, allow_partial=True) as reader:
        assert (reader.lost, reader.document_count) == (["shard-00001-of-00003"], 4)
        assert sorted(reader.search([WAR], 10)[0].docids) == ["d0", "d2", "d3"]
    said = f"{refused.value}; results are partial: 2 of 3 shards are searched"
    assert caplog.messages == [said]
    with SignedImpactSearcher(open_reader(index, allow_partial=True)) as searcher:
        search_topics(searcher, [read_text("1", "western", "expression")], None, output_format="json")
    total = {"value": 1, "relation": "eq"}
    found = {"id": "1", "partial": True, "total": total, "hits": [{"docid": "d5", "rank": 1, "score": 16440.0}]}
    assert json.loads(capsys.readouterr().out) == found


def test_a_shard_that_ends_while_it_is_searched(index, caplog):
    class Mortal(Shard):
        def ask(self, question, *args, **kwargs):
            answer = super().ask(question, *args, **kwargs)

            def mortal():
                if question is ImpactReader.find and "00001" in str(self.folder):
                    raise IndexReadError(f"{self.folder}: the shard is gone")
                return answer()

            return mortal

    with (
        ShardedReader(index, Mortal) as reader,
        pytest.raises(IndexReadError, match="00001-of-00003: the shard is gone"),
    ):
        reader.search([WAR], 10)
    with ShardedReader(index, Mortal, allow_partial=True) as reader:
        whole = reader.content_id
        (partial,) = reader.top_scores([WAR], 10)
        assert len(partial) == 3 and reader.content_id != whole
        assert all(content != whole for content, *_ in reader._top_scores)
    caplog.clear()
    with ShardedReader(index, Mortal, allow_partial=True) as reader:
        assert (reader.document_count, reader.field_document_count) == (6, 6)
        assert sorted(reader.search([WAR], 10)[0].docids) == ["d0", "d2", "d3"]
        assert reader.lost
        assert (reader.document_count, reader.field_document_count) == (4, 4)
        assert sorted(reader.search([WAR], 10)[0].docids) == ["d0", "d2", "d3"]
    assert len(caplog.messages) == 1
    for shard in index.glob("shard-*"):
        (shard / "compneg.json").unlink()
    with pytest.raises(IndexReadError):
        open_reader(index, allow_partial=True)


@pytest.fixture
def by_year(tmp_path):
    documents = [{"id": f"d{number}", "vector": {"t": 1}, "year": number} for number in range(6)]
    collection = write_jsonl(tmp_path / "c.jsonl", *documents)
    build_sharded_index(collection, tmp_path / "index", 2, encoder="given", filter_fields=["year"])
    return tmp_path / "index"


def test_an_order_is_put_together_once_for_a_commit(by_year, monkeypatch):
    request = ComposedSearch([Linear({"t": 1.0})], 9, sort=as_sort("year"))
    asked, sort_values = [], ImpactReader.sort_values

    def counted(reader, sort):
        asked.append(sort)
        return sort_values(reader, sort)

    monkeypatch.setattr(ImpactReader, "sort_values", counted)
    with ShardedReader(by_year) as reader:
        for _ in range(2):
            (ranking,) = reader.find(request)
            assert list(ranking.docids) == [f"d{number}" for number in range(6)]
        assert asked == [request.sort] * 2  # one for each shard
        update_index(by_year, [{"id": "d9", "vector": {"t": 1}, "year": -1}])
        assert reader.reopen()
        (ranking,) = reader.find(request)
        assert ranking.docids[0] == "d9"


def test_a_cancelled_search_asks_no_further_shard_for_its_order(by_year, monkeypatch):
    cancellation, asked, sort_values = Cancellation(60), [], ImpactReader.sort_values

    def last(reader, sort):
        asked.append(sort_values(reader, sort))
        cancellation.cancel()
        return asked[-1]

    monkeypatch.setattr(ImpactReader, "sort_values", last)
    with ShardedReader(by_year) as reader, pytest.raises(SearchCancelled), cancellation.applied():
        reader.find(ComposedSearch([Linear({"t": 1.0})], 9, sort=as_sort("year")))
    assert len(asked) == 1


def test_a_closed_reader_says_so_of_the_whole_index(index):
    reader = open_reader(index)
    reader.close()
    reader.close()
    for ask in (lambda: reader.search([A], 1), lambda: reader.has("d1"), lambda: reader.document_count):
        assert refusal(ask, error=ArgumentError) == f"{index}: the searcher is closed; open another one"


def test_a_searcher_turns_to_the_index_that_took_its_place(index, tmp_path):
    with SignedImpactSearcher(index) as searcher:
        assert not searcher.reopen()
        films = write_jsonl(tmp_path / "films.jsonl", {"id": "new", "contents": "spy"}, {"id": "n2", "contents": "war"})
        build_sharded_index(films, index, 2, existing="overwrite")
        assert searcher.search("spy")[0].docid != "new"
        assert searcher.reopen()
        assert [hit.docid for hit in searcher.search("spy")] == ["new"]
        build_index(films, index, existing="overwrite")  # an index without shards
        assert searcher.reader.is_replaced()
        with pytest.raises(IndexFormatError):
            searcher.reopen()
        assert [hit.docid for hit in searcher.search("spy")] == ["new"]
