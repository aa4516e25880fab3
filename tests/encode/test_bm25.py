import math

import pytest
from film_index import build
from impact_indexes import write_index
from json_lines import write_jsonl
from refusals import refusal

from pyserini_compneg.compose import WEIGHT_SCALE
from pyserini_compneg.encode import Bm25DocumentEncoder, Bm25QueryEncoder, query_encoder
from pyserini_compneg.encode.models import ABLATIONS
from pyserini_compneg.eval import evaluate, parse_measures
from pyserini_compneg.eval.qrels import read_qrels
from pyserini_compneg.expression import Atom
from pyserini_compneg.index import build_index
from pyserini_compneg.lucene import ImpactReader, java_class
from pyserini_compneg.search import SignedImpactSearcher
from pyserini_compneg.support.errors import EncodingError, IndexFormatError
from pyserini_compneg.support.files import iter_jsonl


@pytest.mark.parametrize(
    ("text", "parameters", "expected"),
    [
        ("The bird flies. Birds!", {}, {"bird": 2 / 2.81, "fli": 1 / 1.81}),  # 0.9 (1 − 0.4 + 0.4 · 3/4) = 0.81
        ("The bird flies. Birds!", {"k1": 2.0, "b": 0.0}, {"bird": 2 / 4, "fli": 1 / 3}),
        ("a bird", {}, {"bird": 1 / 1.63}),
        ("", {}, {}),
        ("the", {}, {}),
    ],
)
def test_a_document_by_hand(text, parameters, expected):
    """The average length is 4."""
    assert Bm25DocumentEncoder(4.0, **parameters).encode_batch([text]) == [pytest.approx(expected)]


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"k1": -1}, "k1 must be a finite number, 0 or more, got -1"),
        ({"k1": "1"}, "k1 must be a finite number, 0 or more, got '1'"),
        ({"b": 2}, "b must be a number from 0 to 1, got 2"),
    ],
)
def test_parameters_out_of_range(parameters, said):
    assert refusal(Bm25DocumentEncoder, 4.0, **parameters, error=EncodingError) == said


def stock_index(folder, vectors):
    return write_index(folder, {str(number): vector for number, vector in enumerate(vectors)})


NAME_IT = "name the model that made it as --encoder"


@pytest.mark.parametrize(
    ("vector", "said"),
    [
        ({"time": 80, "bird": 9}, None),  # and in a few documents "and", the stem of "ands"
        ({"time": 80, "##ing": 9}, f"it has the term '##ing', which Lucene's analysis never gives; {NAME_IT}"),
        ({"Zeit": 80}, f"it has none of 12 common English terms, such as 'time'; {NAME_IT}"),
    ],
)
def test_an_index_that_looks_like_anothers_is_warned_of(tmp_path, caplog, vector, said):
    with ImpactReader(stock_index(tmp_path / "index", [vector] * 100 + [{"and": 9}] * 3)) as reader:
        query_encoder("bm25", reader)
    start = f"{tmp_path / 'index'} does not look like an index of bm25: "
    assert caplog.messages == ([start + said] if said else [])


def test_an_index_of_term_frequencies_is_refused(tmp_path):
    with ImpactReader(stock_index(tmp_path / "index", [{"time": 1}] * 100)) as reader:
        message = refusal(query_encoder, "bm25", reader, error=IndexFormatError)
    assert message == (
        f"{tmp_path / 'index'}: has term frequencies, not impacts of bm25, so its scores would not be those of bm25; "
        "build an index of the texts with compneg index"
    )


def test_a_query_by_hand(tmp_path):
    with ImpactReader(stock_index(tmp_path, [{"bird": 1, "fli": 1}, {"bird": 1}, {"bat": 1}])) as reader:
        encoder = Bm25QueryEncoder(reader)
        bird, fli = pytest.approx(2 * math.log(1 + 1.5 / 2.5)), pytest.approx(math.log(1 + 2.5 / 1.5))
        assert encoder.encode_batch(["birds flying over birds"]) == [{"bird": bird}]
        assert encoder.encode_batch(["flies", "fish", "", "the"]) == [{"fli": fli}, {}, {}, {}]
        assert encoder.encode_batch([]) == []


@pytest.mark.parametrize("ablation", ABLATIONS)
def test_what_is_left_of_a_query(tmp_path, ablation):
    index = build(tmp_path)
    with ImpactReader(index) as reader:
        complete = Bm25QueryEncoder(reader).encode_batch(["spy spy comedy unheard-of"])[0]
        assert complete.keys() == {"spy", "comedi"} and complete["spy"] != complete["comedi"]
        flat = dict.fromkeys(complete, 1.0)
        expected = complete if ablation in ("none", "no-expansion") else flat
        assert Bm25QueryEncoder(reader, ablation).encode_batch(["spy spy comedy unheard-of"])[0] == expected
        message = refusal(Bm25QueryEncoder, reader, "weights", error=EncodingError)
    assert message == "ablation must be one of none, no-expansion, no-weighting, doc-only, got 'weights'"


def test_the_scores_of_an_index_are_those_of_the_formula(tmp_path):
    texts = {"d1": "birds of Colombia and other birds", "d2": "bats of Colombia", "d3": "birds", "d4": "films " * 9}
    documents = ({"id": docid, "contents": text} for docid, text in texts.items())
    manifest = build_index(write_jsonl(tmp_path / "collection.jsonl", *documents), tmp_path / "index")
    lengths = {"d1": 4, "d2": 2, "d3": 1, "d4": 9}
    assert manifest.settings == {"k1": 0.9, "b": 0.4, "average_length": 4.0}
    assert (manifest.encoder, manifest.impact_scale, manifest.documents) == ("bm25", 256.0, 4)

    def part(docid, frequency, document_frequency):
        idf = math.log(1 + (4 - document_frequency + 0.5) / (document_frequency + 0.5))
        norm = 0.9 * (1 - 0.4 + 0.4 * lengths[docid] / 4.0)
        return round(WEIGHT_SCALE * idf) * round(256 * frequency / (frequency + norm))

    expected = {"d1": part("d1", 2, 2) + part("d1", 1, 2), "d2": part("d2", 1, 2), "d3": part("d3", 1, 2)}
    with SignedImpactSearcher(tmp_path / "index") as searcher:
        hits = searcher.search("birds of Colombia")
    assert {hit.docid: hit.score for hit in hits} == expected


@pytest.mark.slow
def test_scifact_is_ranked_as_anserinis_own_bm25_ranks_it(tmp_path, shared_data):
    """Side by side, same analysis and parameters; only impacts and Lucene's document lengths are rounded."""
    qrels = read_qrels(shared_data / "scifact" / "qrels" / "test.tsv")
    topics = {record["_id"]: record["text"] for _, record in iter_jsonl(shared_data / "scifact" / "queries.jsonl")}
    topics = {qid: topics[qid] for qid in qrels}
    runs = {
        "ours": our_run(shared_data / "scifact" / "corpus.jsonl.gz", topics, tmp_path),
        "stock": stock_run(shared_data / "scifact" / "corpus.jsonl.gz", topics, tmp_path),
    }
    (measure,) = parse_measures(["ndcg_cut.10"])
    means = {}
    for name, run in runs.items():
        values = evaluate(qrels, run, [measure])
        means[name] = sum(value[measure.name] for value in values.values()) / len(values)
    assert len(topics) == 300
    assert means["stock"] > 0.67
    assert abs(means["ours"] - means["stock"]) < 0.005, means


def our_run(corpus, topics, folder):
    build_index(corpus, folder / "ours", threads=2)
    with SignedImpactSearcher(folder / "ours") as searcher:
        rankings = searcher.batch_search(list(map(Atom, topics.values())), list(topics), k=10, threads=2)
    return {qid: {hit.docid: hit.score for hit in hits} for qid, hits in rankings.items()}


def stock_run(corpus, topics, folder):
    documents = (
        {"id": record["_id"], "contents": f"{record['title']}\n{record['text']}"} for _, record in iter_jsonl(corpus)
    )
    write_jsonl(folder / "collection" / "documents.jsonl", *documents)
    options = f"-collection JsonCollection -input {folder / 'collection'} -index {folder / 'stock'} -threads 2"
    java_class("io.anserini.index.IndexCollection").main(
        [*options.split(), "-generator", "DefaultLuceneDocumentGenerator"]
    )
    searcher = java_class("io.anserini.search.SimpleSearcher")(str(folder / "stock"))
    searcher.set_bm25(0.9, 0.4)
    run = {qid: {hit.docid: hit.score for hit in searcher.search(text, 10)} for qid, text in topics.items()}
    searcher.close()
    return run
