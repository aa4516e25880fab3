import json
import logging
import os
import shutil
import sys
from functools import partial
from types import SimpleNamespace

import pytest
from refusals import refusal

pytest.importorskip("torch", reason="models are exported by torch")
pytest.importorskip("transformers", reason="checkpoints are loaded by transformers")
pytest.importorskip("onnxscript", reason="torch exports with onnxscript")
pytest.importorskip("onnxruntime", reason="exports are run by onnxruntime")

from checkpoints import edit_json, sample_texts, token_weights  # noqa: E402

from pyserini_compneg.encode import CachedQueryEncoder, neural, query_encoder, sides  # noqa: E402
from pyserini_compneg.encode.models import (  # noqa: E402
    ABLATIONS,
    Head,
    ModelOptions,
    load_checkpoint,  # noqa: E402
    model_hash,  # noqa: E402
)
from pyserini_compneg.encode.models.checkpoint import MODEL_FILE  # noqa: E402
from pyserini_compneg.encode.models.tokenizer import TextTokenizer  # noqa: E402
from pyserini_compneg.encode.neural import ModelDocumentEncoder, ModelQueryEncoder  # noqa: E402
from pyserini_compneg.index import build_index, build_sharded_index  # noqa: E402
from pyserini_compneg.lucene import QUERY_TOKENIZER, Manifest, open_reader  # noqa: E402
from pyserini_compneg.support.errors import DownloadError, EncodingError  # noqa: E402

QUERIES = ["spy films", "films starring Brian Cox", "comedies set in Japan", "not a word"]
TORCH = ModelOptions("torch")


@pytest.fixture
def cache(tmp_path, monkeypatch, exported):
    """A cache of the test's own, in which ``bert`` was exported already, but no query encoded."""
    folder = exported("bert")
    shutil.copytree(folder, tmp_path / "cache" / "models" / folder.name)
    monkeypatch.setenv("COMPNEG_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def queries(folder, options=None, ablation=None):
    return ModelQueryEncoder(load_checkpoint(str(folder), options), options, ablation)


def documents(folder, options=None):
    return ModelDocumentEncoder(load_checkpoint(str(folder), options), options)


def messages(caplog):
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def alike(a, b, tolerance=1e-4):
    return all(abs(a.get(term, 0.0) - b.get(term, 0.0)) <= tolerance for term in {**a, **b})


def test_the_two_backends_agree(checkpoints, cache):
    found, expected = (queries(checkpoints.bert, options).encode_batch(QUERIES) for options in (None, TORCH))
    assert all(map(alike, found, expected))
    texts = ["", *sample_texts(20), " \n"]
    found, expected = (documents(checkpoints.bert, options).encode_batch(texts) for options in (None, TORCH))
    assert all(map(alike, found, expected))
    assert [bool(vector) for vector in found] == [False, *[True] * 20, False]


def test_an_index_that_is_opened_again_keeps_its_network(checkpoints, cache, monkeypatch):
    """While the searcher of before is there; with other options there is another network."""
    loaded, load = [], neural.load_side
    monkeypatch.setattr(neural, "load_side", lambda *given: loaded.append(given) or load(*given))
    before = queries(checkpoints.bert)
    expected = before.encode_batch(["spy films"])
    after = queries(checkpoints.bert)
    shutil.rmtree(cache / "queries")
    del before
    assert after.encode_batch(["spy films"]) == queries(checkpoints.bert).encode_batch(["spy films"]) == expected
    assert len(loaded) == 1
    queries(checkpoints.bert, ModelOptions(max_length=7)).encode_batch(["spy films"])
    assert len(loaded) == 2
    del after
    shutil.rmtree(cache / "queries")
    queries(checkpoints.bert).encode_batch(["spy films"])
    assert len(loaded) == 3


def test_a_stream_keeps_the_order(checkpoints, cache):
    encoder = documents(checkpoints.bert)
    texts = sample_texts(30)
    batches = [texts[:7], [], ["", texts[7]], texts[8:]]
    found = list(encoder.stream(iter(batches)))
    assert [len(vectors) for vectors in found] == [7, 0, 2, 22]
    whole = encoder.encode_batch(texts)
    assert all(alike(*pair, 2e-5) for pair in zip(found[0] + found[2][1:] + found[3], whole, strict=True))


def test_small_batches_of_a_stream_are_encoded_together(checkpoints, cache, monkeypatch):
    encoder, together = documents(checkpoints.bert), []
    encode = encoder._encoder.encode_tokens
    monkeypatch.setattr(encoder._encoder, "encode_tokens", lambda ids: together.append(len(ids)) or encode(ids))
    batches = [["film"], [], ["a spy", "of the film"], ["spy"] * 511, ["film"] * 600]
    found = list(encoder.stream(iter(batches)))
    assert together == [3, 511, 600]
    assert list(map(len, found)) == [1, 0, 2, 511, 600]
    together.clear()
    monkeypatch.setattr(neural, "_MOST_CHARACTERS", 3 * 4 * 64)  # so three texts that the model reads to its limit
    list(encoder.stream([["the film " * 1000]] * 7 + [["spy"]] * 20))
    assert together == [3, 3, 21]
    for text, vector in zip(["film", "a spy", "of the film"], [*found[0], *found[2]], strict=True):
        assert alike(vector, encoder.encode_batch([text])[0])


def test_a_query_is_encoded_once(checkpoints, cache, monkeypatch):
    encoded, encode_tokens = [], sides.SideEncoder.encode_tokens
    monkeypatch.setattr(
        sides.SideEncoder, "encode_tokens", lambda self, ids: encoded.append(len(ids)) or encode_tokens(self, ids)
    )
    first, second = queries(checkpoints.bert).encode_batch([QUERIES[0], f" {QUERIES[0]} "])
    kept = dict(first)
    first.clear()  # which changes neither the other vector nor what is kept
    expected = queries(checkpoints.bert).encode_batch([*QUERIES, QUERIES[3], " " + QUERIES[2]])
    assert expected[0] == second == kept != {}
    assert encoded == [2, len(QUERIES)]  # white space may be a token of another model
    (file,) = (cache / "queries").iterdir()
    assert "-fp32-onnx-64-" in file.name
    monkeypatch.setattr(sides, "OnnxModel", None)
    for path in (cache / "models").rglob(MODEL_FILE):
        path.write_bytes(b"broken")
    again = queries(checkpoints.bert)
    assert again.encode_batch(QUERIES) == expected[:4]
    assert again.encode_batch([QUERIES[1]])[0] == expected[1]
    assert again.encode_batch([]) == []


def test_other_settings_have_other_vectors(checkpoints, cache):
    for options in (None, TORCH, ModelOptions("torch", max_length=8), ModelOptions("torch", head=Head("relu", "sum"))):
        queries(checkpoints.bert, options).encode_batch(["spy films"])
    queries(checkpoints.bert, ModelOptions(top_terms=2)).encode_batch(["spy films"])
    assert len(list((cache / "queries").iterdir())) == 4


def test_cut_texts_are_warned_of(checkpoints, cache, caplog):
    cut = "have more than {} tokens, and are cut off there"
    long = ["the " * 70, "the " * 62, "film " * 63]
    queries(checkpoints.bert).encode_batch(long)
    short = ModelOptions("torch", max_length=4)
    queries(checkpoints.bert, short).encode_batch(["the film", "a the film"])
    list(documents(checkpoints.bert, short).stream([["a the film", "film"], ["the film of a spy"]]))
    assert messages(caplog) == [
        f"2 of 3 queries {cut.format(64)}; the first is '{long[0][:56]}...",
        f"1 of 2 queries {cut.format(4)}; the first is 'a the film'",
        f"2 documents {cut.format(4)}",
    ]


def test_lengths_that_the_model_does_not_have(checkpoints):
    refused = refusal(documents, checkpoints.bert, ModelOptions("torch", max_length=65), error=EncodingError)
    assert refused == f"{checkpoints.bert}: can read 64 tokens of a text, not --max-length 65"


def own_terms(folder, text):
    tokenizer = TextTokenizer(folder, 64, special_tokens=False)
    (ids,) = tokenizer([text]).ids
    return {tokenizer.terms[number] for number in ids} - {"[UNK]"}


@pytest.mark.slow
def test_ablations(splade_tiny):
    texts = [*QUERIES, "films films \U0010ffff", "", *(text[:60] for text in sample_texts(10))]
    full = queries(splade_tiny).encode_batch(texts)
    own = [own_terms(splade_tiny, text) for text in texts]
    expected = {
        "none": full,
        "no-expansion": [
            {term: weight for term, weight in vector.items() if term in terms}
            for vector, terms in zip(full, own, strict=True)
        ],
        "no-weighting": [dict.fromkeys(vector, 1.0) for vector in full],
        "doc-only": [dict.fromkeys(terms, 1.0) for terms in own],
    }
    assert tuple(expected) == ABLATIONS
    for ablation, vectors in expected.items():
        assert queries(splade_tiny, None, ablation).encode_batch(texts) == vectors
    assert "movie" in full[0] and "movie" not in expected["no-expansion"][0]  # of "spy films"
    assert sum(map(len, expected["no-expansion"])) < sum(map(len, full))


def test_a_query_without_a_network_loads_none(checkpoints, tmp_path, monkeypatch):
    monkeypatch.setenv("COMPNEG_CACHE", str(tmp_path))
    monkeypatch.setattr(sides, "_network", None)
    assert queries(checkpoints.bert, None, "doc-only").encode_batch(["the film"])[0] == {"the": 1.0, "film": 1.0}
    static = queries(checkpoints.opensearch).encode_batch(["the film"])[0]
    tokens = TextTokenizer(checkpoints.opensearch, 64).terms
    weights = dict(zip(tokens, token_weights(), strict=True))
    assert static == {"the": weights["the"], "film": weights["film"]}
    assert queries(checkpoints.router).encode_batch(["the film the"])[0] == pytest.approx(static)
    assert not (tmp_path / "models").exists()


def test_signed_weights_keep_their_sign_without_weighting(checkpoints):
    text = sample_texts(5)[4]
    full = queries(checkpoints.signed, TORCH).encode_batch([text])[0]
    assert min(full.values()) < 0 < max(full.values())
    ones = queries(checkpoints.signed, TORCH, "no-weighting").encode_batch([text])[0]
    assert ones == {term: 1.0 if weight > 0 else -1.0 for term, weight in full.items()}


def test_queries_and_documents_are_pruned(checkpoints):
    text = sample_texts(5)[4]
    (full,) = queries(checkpoints.signed, TORCH).encode_batch([text])
    for values in ({"top_terms": 5}, {"threshold": 0.1}, {"top_terms": 5, "threshold": 1e-9}):
        options = ModelOptions("torch", **values)
        expected = options.pruned(full)
        assert 0 < len(expected) < len(full)
        assert queries(checkpoints.signed, options).encode_batch([text]) == [expected]
        assert documents(checkpoints.signed, options).encode_batch([text]) == [expected]


def test_pruning_by_hand():
    vector = {"b": 1.0, "a": -1.0, "c": 3.0, "d": 0.5, "e": -0.25}
    assert ModelOptions().pruned(vector) == vector
    assert list(ModelOptions(top_terms=2).pruned(vector)) == ["c", "a"]
    assert list(ModelOptions(top_terms=9).pruned(vector)) == list(vector)
    assert ModelOptions(threshold=0.5).pruned(vector) == {"b": 1.0, "a": -1.0, "c": 3.0, "d": 0.5}
    assert ModelOptions(threshold=9.0, top_terms=1).pruned(vector) == {}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"max_length": 2}, "max_length must be a whole number from 3, got 2"),
        ({"batch_size": 0}, "batch_size must be a whole number from 1, got 0"),
        ({"top_terms": 0}, "top_terms must be a whole number from 1, got 0"),
        ({"threshold": -1.0}, "threshold must be a finite number from 0, got -1.0"),
        ({"backend": "tf"}, "backend must be one of onnx, torch, got 'tf'"),
        ({"precision": "fp8"}, "precision must be one of fp32, int8, fp16, got 'fp8'"),
        ({"device": "tpu"}, "device must be one of cpu, cuda, got 'tpu'"),
        *(
            ({"precision": "int8", **one}, "int8 is for the onnx backend on a processor; choose fp32, or fp16 on a GPU")
            for one in ({"backend": "torch"}, {"device": "cuda"})
        ),
        ({"precision": "fp16"}, "fp16 is for GPUs; choose --device cuda, or int8 on a processor"),
    ],
)
def test_options_that_do_not_fit(values, said):
    assert refusal(ModelOptions, **values, error=EncodingError) == said


@pytest.mark.parametrize(
    ("chosen", "indexed", "expected"),
    [
        ({}, {"precision": "int8"}, {"precision": "int8"}),
        ({"max_length": 9}, {"precision": "int8"}, {"max_length": 9, "precision": "int8"}),
        ({"precision": "fp32"}, {"precision": "int8"}, {"precision": "fp32"}),
        ({"backend": "torch"}, {"precision": "int8"}, {"backend": "torch"}),
        ({"device": "cuda"}, {"precision": "int8"}, {"device": "cuda"}),
        ({}, {"precision": "fp16"}, {}),
        ({}, {"head": "relu:max"}, {"head": Head("relu", "max")}),
        ({"head": Head("relu", "sum")}, {"head": "relu:max"}, {"head": Head("relu", "sum")}),
    ],
)
def test_queries_take_the_head_and_int8_of_their_index(chosen, indexed, expected):
    assert ModelOptions(**chosen).for_index(indexed) == ModelOptions(**expected)


def test_what_an_index_keeps_of_a_model(checkpoints):
    side = load_checkpoint(str(checkpoints.bert)).document
    plain = {"model": model_hash(side), "precision": "fp32", "max_length": 64}
    assert documents(checkpoints.bert, TORCH).settings == plain
    chosen = ModelOptions("torch", max_length=16, top_terms=5, threshold=0.5)
    assert documents(checkpoints.bert, chosen).settings == plain | {"max_length": 16, "top_terms": 5, "threshold": 0.5}
    assert not documents(checkpoints.bert, TORCH).signed
    assert documents(checkpoints.signed, TORCH).signed


def test_a_model_of_queries_alone_encodes_no_documents(checkpoints, tmp_path):
    folder = shutil.copytree(checkpoints.router, tmp_path / "m")
    structure = json.loads((folder / "router_config.json").read_text())["structure"]
    edit_json(folder / "router_config.json", structure=structure | {"document": structure["query"]})
    refused = refusal(documents, folder, error=EncodingError)
    assert refused == f"{folder}: has no network for documents, so it cannot index them"


NO_WEIGHTS = "expected JSON of tokens and their weights: "
NO_WEIGHT = "the weight of 'spy' must be a finite number, 0 or more, got "


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", f"{NO_WEIGHTS}Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        ("[]", f"{NO_WEIGHTS}'list' object has no attribute 'items'"),
        ('{"a": "x"}', f"{NO_WEIGHT}'x'".replace("'spy'", "'a'")),
        ('{"film": 2.0, "spy": -1.0}', f"{NO_WEIGHT}-1.0"),
        ('{"spy": NaN}', f"{NO_WEIGHT}nan"),
        ('{"spy": 1e999}', f"{NO_WEIGHT}inf"),
    ],
)
def test_damaged_weights_of_tokens(checkpoints, tmp_path, content, said):
    folder = shutil.copytree(checkpoints.opensearch, tmp_path / "m")
    (folder / "idf.json").write_text(content)
    for encoder in (queries, documents):  # which is refused before it runs, since no query could use its vectors
        assert refusal(encoder, folder, error=EncodingError) == f"{folder / 'idf.json'}: {said}"


@pytest.mark.parametrize(("kind", "shards"), [("", 1), ("bm25+", 1), ("", 2)])
def test_an_index_keeps_the_tokenizer_of_queries(checkpoints, tmp_path, monkeypatch, kind, shards):
    """So a search without transformers splits queries as documents were split, whatever the files of the model say."""
    monkeypatch.setenv("COMPNEG_CACHE", str(tmp_path / "cache"))
    folder, index = shutil.copytree(checkpoints.opensearch, tmp_path / "m"), tmp_path / "index"
    edit_json(folder / "tokenizer_config.json", tokenizer_class="BertTokenizer", do_lower_case=False)
    collection = tmp_path / "collection.jsonl"
    lines = (json.dumps({"id": f"d{n}", "contents": text}) for n, text in enumerate(sample_texts(6)))
    collection.write_text("\n".join(lines))
    build = partial(build_sharded_index, shards=shards) if shards > 1 else build_index
    for more in ({}, {"existing": "overwrite"}):  # the file is a part of the index
        build(collection, index, encoder=f"{kind}{folder}", model_options=TORCH, **more)
    texts = ["Spy FILMS", "films"]
    with open_reader(index) as reader:
        expected = query_encoder(None, reader).encode_batch(texts)
    assert len([*index.glob(f"**/{QUERY_TOKENIZER}")]) == shards
    monkeypatch.setitem(sys.modules, "transformers", None)
    monkeypatch.setenv("COMPNEG_CACHE", str(tmp_path / "elsewhere"))
    assert "`do_lower_case` is true in tokenizer.json" in refusal(query_encoder, str(folder), None, error=EncodingError)
    with open_reader(index) as reader:
        assert query_encoder(None, reader).encode_batch(texts) == expected != [{}, {}]


def test_too_few_weights_of_tokens(checkpoints, tmp_path):
    import torch
    from safetensors.torch import save_file

    folder = tmp_path / "m"
    shutil.copytree(checkpoints.router, folder)
    place = folder / "query_0_SparseStaticEmbedding" / "model.safetensors"
    save_file({"weight": torch.ones(10)}, place)
    size = len(token_weights())
    assert refusal(queries, folder, error=EncodingError) == f"{place}: expected a weight for each of {size:,} tokens"
    place.write_bytes(b"no weights")
    with pytest.raises(EncodingError, match=f"^{place}: cannot be read: "):
        queries(folder)


def test_encoders_without_an_index(checkpoints, cache, tmp_path):
    assert isinstance(query_encoder(str(checkpoints.bert), None), ModelQueryEncoder)
    atoms = tmp_path / "atoms.jsonl"
    atoms.write_text('{"text": "a", "vector": {"x": 1}}\n')
    assert isinstance(query_encoder(str(atoms), None), CachedQueryEncoder)
    for name in (str(atoms), "bm25"):
        refused = refusal(query_encoder, name, None, TORCH, error=EncodingError)
        assert refused == f"{name}: not a model, so options such as --precision do not apply"
    assert refusal(query_encoder, str(atoms), None, ablation="doc-only", error=EncodingError) == (
        f"{atoms}: vectors that were encoded elsewhere are taken as they are; leave out --ablation"
    )
    assert os.environ["HF_HUB_OFFLINE"] == "1"
    with pytest.raises(DownloadError):
        query_encoder("owner/unheard-of", None)


@pytest.mark.slow
def test_in_int8_a_vector_depends_on_its_text_alone(checkpoints, exported, tmp_path):
    exported("bert", "int8")
    encoder = documents(checkpoints.bert, ModelOptions(precision="int8"))
    texts = sample_texts(8)
    assert encoder.encode_batch(texts) == [encoder.encode_batch([text])[0] for text in texts]
    assert encoder.encode_batch(texts[::-1]) == encoder.encode_batch(texts)[::-1]
    reader = SimpleNamespace(manifest=Manifest(str(checkpoints.bert), encoder.settings), folder=tmp_path)
    assert query_encoder(None, reader).encode_batch(texts) == encoder.encode_batch(texts)


def test_a_prompt_is_no_term_of_a_query(checkpoints, cache):
    (vector,) = queries(checkpoints.legacy, TORCH, "doc-only").encode_batch(["spy"])
    assert "films" not in vector
    own = sides.load_side(load_checkpoint(str(checkpoints.legacy)).query, TORCH).own_terms(["spy"])
    assert own == [list(vector)]
