"""Latent models as encoders: activations, weights, hybrids, and what is refused."""

import json

import pytest
from checkpoints import edit_json, sample_texts
from json_lines import write_jsonl
from latent_models import ACTIVE, LATENTS, copied, write_latent_model
from refusals import refusal

pytest.importorskip("onnxruntime", reason="models are run by onnxruntime")
torch = pytest.importorskip("torch", reason="latent models are made with torch")
pytest.importorskip("onnx", reason="models are exported by onnx")

from safetensors.torch import load_file, save_file  # noqa: E402

from pyserini_compneg import SignedImpactSearcher, build_index  # noqa: E402
from pyserini_compneg.commands.export import main as export  # noqa: E402
from pyserini_compneg.commands.search import main as search  # noqa: E402
from pyserini_compneg.compose import Linear  # noqa: E402
from pyserini_compneg.encode import encode_collection, query_encoder  # noqa: E402
from pyserini_compneg.encode.bm25 import lucene_idf  # noqa: E402
from pyserini_compneg.encode.hybrid import LATENT_WEIGHT, model_parts  # noqa: E402
from pyserini_compneg.encode.models import ModelOptions, load_checkpoint  # noqa: E402
from pyserini_compneg.encode.networks import load_trunk  # noqa: E402
from pyserini_compneg.encode.neural import ModelQueryEncoder  # noqa: E402
from pyserini_compneg.index import build_sharded_index, update_index  # noqa: E402
from pyserini_compneg.lucene import ImpactReader, open_reader  # noqa: E402
from pyserini_compneg.support.errors import EncodingError, IndexFormatError  # noqa: E402

TEXTS = {f"d{number}": text for number, text in enumerate(sample_texts(24))}
QUERIES = ["birds of the world", "a film", "The king. "]


@pytest.fixture(scope="module")
def model(checkpoints, tmp_path_factory):
    return write_latent_model(tmp_path_factory.mktemp("latent") / "model", checkpoints.bert)


@pytest.fixture(scope="module")
def collection(tmp_path_factory):
    records = [{"id": docid, "contents": text} for docid, text in TEXTS.items()]
    return write_jsonl(tmp_path_factory.mktemp("texts") / "documents.jsonl", *records)


@pytest.fixture(scope="module")
def index(model, collection, tmp_path_factory):
    folder = tmp_path_factory.mktemp("index") / "both"
    build_index(collection, folder, f"bm25+latent:{model}")
    return folder


def build_refusal(folder):
    """The message where no index can be built with a latent model."""
    collection = write_jsonl(folder.parent / "d.jsonl", {"id": "a", "contents": "b"})
    said = refusal(build_index, collection, folder.parent / "i", f"latent:{folder}", error=EncodingError)
    assert not (folder.parent / "i").exists()
    return said


def activations(model, text):
    """The latents of a text, from the network and the weights alone."""
    from transformers import AutoTokenizer

    tokenizer, weights = AutoTokenizer.from_pretrained(model), load_file(model / "latent.safetensors")
    silent = {*json.loads((model / "latent.json").read_text())["silent"], *tokenizer.all_special_ids}
    ids = tokenizer(text, truncation=True, max_length=64, return_tensors="pt")["input_ids"]
    with torch.inference_mode():
        vectors = load_trunk(model)(ids).last_hidden_state[0]
    found: dict[str, float] = {}
    for number, vector in zip(ids[0].tolist(), vectors, strict=True):
        if number in silent:
            continue
        values, latents = (weights["weight"] @ vector + weights["bias"]).topk(ACTIVE)
        for value, latent in zip(values.tolist(), latents.tolist(), strict=True):
            if value > 0:
                found[f"~{latent}"] = max(value, found.get(f"~{latent}", 0.0))
    return found


@pytest.mark.parametrize("backend", ["torch", "onnx"])
def test_activations_are_those_of_the_network(model, backend):
    encoder = ModelQueryEncoder(load_checkpoint(f"latent:{model}"), ModelOptions(backend=backend))
    texts = [*QUERIES, *list(TEXTS.values())[:3]]
    for text, vector in zip(texts, encoder.encode_batch(texts), strict=True):
        assert vector == pytest.approx(activations(model, text), abs=2e-5)
    assert encoder.encode_batch(["the of ."]) == [{}]


def test_scores_are_bm25s_formula_over_activations(model, collection, tmp_path):
    build_index(collection, tmp_path / "index", f"latent:{model}")
    head = json.loads((model / "latent.json").read_text())
    found = {docid: activations(model, text) for docid, text in TEXTS.items()}
    with SignedImpactSearcher(tmp_path / "index") as searcher:
        hits = {hit.docid: hit.score for hit in searcher.search(QUERIES[0], len(TEXTS))}
    expected = dict.fromkeys(found, 0.0)
    for latent, value in activations(model, QUERIES[0]).items():
        frequency = sum(latent in vector for vector in found.values())
        for docid, vector in found.items():
            if latent in vector:
                norm = 0.3 * (0.6 + 0.4 * len(vector) / head["mean_latents"])
                level = max(1, round(15 * vector[latent] / (vector[latent] + norm)))
                expected[docid] += value * lucene_idf(frequency, len(TEXTS)) * level / 15
    positive = {docid: score for docid, score in expected.items() if score}
    assert hits.keys() == positive.keys() and len(hits) > 5
    scale = max(hits.values()) / max(positive.values())
    assert hits == pytest.approx({docid: score * scale for docid, score in positive.items()}, rel=5e-3)


def test_a_hybrid_adds_the_scores_of_its_parts(model, collection, index, tmp_path):
    """Of ``bm25``, of ``mini`` and of latents, with their weights; words decide what NOT! removes."""
    build_index(collection, tmp_path / "three", f"bm25+mini+latent:{model}")
    build_index(collection, tmp_path / "bm25")
    with open_reader(tmp_path / "three") as three, open_reader(tmp_path / "bm25") as bm25, open_reader(index) as two:
        (joined,) = query_encoder(None, three).encode_batch([QUERIES[0]])
        (words,) = query_encoder(None, bm25).encode_batch([QUERIES[0]])
        (pair,) = query_encoder(None, two).encode_batch([QUERIES[0]])
        assert {term: weight for term, weight in joined.items() if term[0] not in "@~"} == words
        assert {term: weight for term, weight in joined.items() if term[0] != "@"} == pair
        (other,) = query_encoder(None, three, latent_weight=1.0, model_weight=0.0).encode_batch([QUERIES[0]])
        assert not [term for term in other if term[0] == "@"]
        latents = {term: weight for term, weight in pair.items() if term[0] == "~"}
        assert latents and {term: other[term] * LATENT_WEIGHT for term in latents} == pytest.approx(latents)
        assert three.manifest.encoder == f"bm25+mini+latent:{model}"
    with SignedImpactSearcher(tmp_path / "three") as searcher:
        kept = {hit.docid for hit in searcher.search(f'"{QUERIES[0]}" NOT! "birds"', len(TEXTS))}
        assert not kept & {docid for docid, text in TEXTS.items() if "bird" in text.lower()}


def test_all_ways_to_an_index_are_one(model, collection, index, tmp_path):
    """Vectors of encode, shards, and an update of another order give the scores of one build."""
    encoder = f"bm25+latent:{model}"
    encode_collection(collection, tmp_path / "vectors", encoder)
    build_index(tmp_path / "vectors", tmp_path / "encoded", encoder)
    build_sharded_index(collection, tmp_path / "shards", 3, encoder)
    build_index(collection, tmp_path / "updated", encoder)
    changed = write_jsonl(tmp_path / "changed.jsonl", {"id": "d0", "contents": "another text"})
    update_index(tmp_path / "updated", changed)
    update_index(tmp_path / "updated", collection)

    def hits(folder):
        with SignedImpactSearcher(folder) as searcher:
            return {hit.docid: hit.score for hit in searcher.search("birds AND film NOT king", len(TEXTS))}

    expected = hits(index)
    assert expected
    for folder in ("encoded", "shards", "updated"):
        assert hits(tmp_path / folder) == pytest.approx(expected), folder


def test_an_update_encodes_with_the_settings_of_each_model(model, tmp_path):
    """The models of a hybrid differ in what they read of a text, and one comes exported in int8."""
    records = [{"id": docid, "contents": text} for docid, text in TEXTS.items()]
    records[0]["contents"] = " ".join(TEXTS.values())
    collection, index = write_jsonl(tmp_path / "d.jsonl", *records), tmp_path / "index"
    manifest = build_index(collection, index, f"bm25+mini+latent:{model}")
    assert not {"precision", "max_length"} & manifest.settings.keys() and "model" in manifest.settings
    with ImpactReader(index) as reader:
        first = reader.vector("d0")
        assert {term[0] for term in first} >= {"@", "~"}
        update_index(index, write_jsonl(tmp_path / "changed.jsonl", {"id": "d0", "contents": "another text"}))
        update_index(index, collection)
        assert reader.reopen() and reader.vector("d0") == first


def test_without_weighting_latents_are_equal(model, collection, index, tmp_path):
    build_index(collection, tmp_path / "alone", f"latent:{model}")
    for folder, signs in ((index, {1.0}), (tmp_path / "alone", set())):
        with open_reader(folder) as reader:
            (vector,) = query_encoder(None, reader, ablation="no-weighting").encode_batch([QUERIES[0]])
            latents = [weight for term, weight in vector.items() if term[0] == "~"]
            assert len(latents) > 1 and len(set(latents)) == 1
            assert {weight for term, weight in vector.items() if term[0] != "~"} == signs


def test_the_tag_of_a_run_has_the_weight_of_latents(model, index, tmp_path, capsys):
    topics = write_jsonl(tmp_path / "t.jsonl", {"id": "1", "query": QUERIES[0]})
    assert search(["--index", str(index), "--topics", str(topics), "--latent-weight", "0.5"]) == 0
    tags = {line.split()[-1] for line in capsys.readouterr().out.splitlines()}
    assert tags == {f"compneg-bm25+latent_{model.name}-latent-weight=0.5"}


def test_an_export_is_a_latent_model(model, index, collection, tmp_path):
    """In its place, without the weights: its vectors are the same, and its folder can be copied."""
    assert export(["--encoder", f"latent:{model}", "--output", str(tmp_path / "made")]) == 0
    exported = copied(tmp_path / "made", tmp_path / "exported")
    assert not list(exported.glob("*.safetensors"))
    build_index(collection, tmp_path / "index", f"bm25+latent:{exported}")
    with open_reader(tmp_path / "index") as made, open_reader(index) as reader:
        assert made.concepts == reader.concepts != []
        assert made.vector("d0") == reader.vector("d0")
        assert query_encoder(None, made).encode_batch(QUERIES) == query_encoder(None, reader).encode_batch(QUERIES)


def test_impacts_are_few_levels(index):
    with ImpactReader(index) as reader:
        terms = [f"~{number}" for number in range(LATENTS)]
        known = [term for term, count in zip(terms, reader.document_frequencies(terms), strict=True) if count]
        impacts = {
            int(score) for term in known for _, scores in reader.search([Linear({term: 1.0})], 99) for score in scores
        }
    assert known and impacts <= set(range(1, 16)) and len(impacts) > 3


def test_the_model_of_an_index_is_known(model, index, checkpoints, tmp_path):
    other = write_latent_model(tmp_path / "other", checkpoints.bert, seed=1)
    moved = copied(model, tmp_path / "moved")
    with open_reader(index) as reader:
        said = refusal(query_encoder, f"bm25+latent:{other}", reader, error=IndexFormatError)
        assert said.startswith(f"{index} was encoded with 'bm25+latent:{model}'") and "is another model" in said
        assert query_encoder(f"bm25+latent:{moved}", reader).encode_batch(QUERIES) == query_encoder(
            None, reader
        ).encode_batch(QUERIES)
        for name in (f"latent:{model}", f"bm25+mini+latent:{model}", "bm25"):
            assert "use the index's encoder" in refusal(query_encoder, name, reader, error=IndexFormatError)
        edit_json(moved / "latent.json", k1=0.5)
        assert "is another model" in refusal(query_encoder, f"bm25+latent:{moved}", reader, error=IndexFormatError)


def test_folders_whose_names_have_the_signs_of_encoders(model, index, checkpoints, collection, tmp_path, monkeypatch):
    folder = copied(model, tmp_path / "mini+latent:a+b")
    manifest = build_index(collection, tmp_path / "signs", f"bm25+latent:{folder}")
    assert manifest.encoder == f"bm25+latent:{folder}"
    with open_reader(tmp_path / "signs") as made, open_reader(index) as reader:
        assert query_encoder(None, made).encode_batch(QUERIES) == query_encoder(None, reader).encode_batch(QUERIES)
    other, both = copied(checkpoints.bert, tmp_path / "bert+latent"), copied(checkpoints.bert, tmp_path / "b+latent:x")
    (tmp_path / "link").symlink_to(other)
    for place in (other, both):
        for name in (f"{place}", f"bm25+{place}"):
            what = f"{place} is a folder, and the +latent in its name begins the name of a latent model"
            said = refusal(build_index, collection, tmp_path / "i", name, error=EncodingError)
            assert said == f"{name}: {what}; rename the folder"
    monkeypatch.chdir(copied(checkpoints.bert, tmp_path / "in" / "latent+x").parent)
    said = refusal(build_index, collection, tmp_path / "i", "bm25+latent+x", error=EncodingError)
    assert said == "bm25+latent+x: a latent model is named once, and last; write ./latent+x for the folder"
    assert model_parts("bm25+./latent+x") == {"@": "./latent+x"}
    said = refusal(build_index, collection, tmp_path / "i", f"bm25+{tmp_path / 'link'}", error=EncodingError)
    assert said == (
        f"bm25+{tmp_path / 'link'}: the place of its model makes 'bm25+{other}' of it, in which +latent begins the "
        "name of a latent model; rename the folder"
    )


def test_names_and_options_without_sense(model, index, collection, checkpoints, tmp_path):
    cases = [
        (str(model), {}, f"{model}: is a latent model; write latent:{model}"),
        (
            f"latent:{checkpoints.bert}",
            {},
            f"latent:{checkpoints.bert}: is no latent model; leave out latent:, or make a latent model of it with "
            "train latent --base",
        ),
        (
            f"mini+latent:{model}",
            {},
            f"mini+latent:{model}: a latent model can be added to bm25, or to bm25 and a model, but not to a model "
            f"alone; write bm25+mini+latent:{model}, or rename a folder of this name",
        ),
        *(
            (name, {}, f"{name}: a latent model is named once, and last; write bm25+latent, or bm25+mini+latent")
            for name in ("latent+mini", "latent+latent", "bm25+latent+mini", "bm25+latent+latent")
        ),
    ]
    for name, options, said in cases:
        assert refusal(build_index, collection, tmp_path / "index", name, error=EncodingError, **options) == said
    with open_reader(index) as reader:
        said = refusal(query_encoder, None, reader, ablation="no-expansion", error=EncodingError)
        assert said.endswith("whose terms are no tokens of the query; leave out --ablation no-expansion")
        said = refusal(query_encoder, None, reader, model_weight=1.0, error=EncodingError)
        assert said.endswith("has no such part, so --model-weight, which is for bm25+MODEL, has no use")
    said = refusal(query_encoder, f"latent:{model}", None, error=IndexFormatError)
    assert said == f"latent:{model} weighs a query's terms by the statistics of an index; name the --index"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"active": 0}, "`active` must be a whole number from 1 to `latents`, got 0"),
        ({"active": LATENTS + 1}, f"`active` must be a whole number from 1 to `latents`, got {LATENTS + 1}"),
        ({"mean_latents": "9"}, "`mean_latents` must be a finite number from 1, got '9'"),
        ({"k1": -1}, "`k1` must be a finite number, 0 or more, got -1"),
        ({"b": 2}, "`b` must be a number from 0 to 1, got 2"),
        ({"levels": 257}, "`levels` must be a whole number from 1 to 256, got 257"),
        ({"silent": 3}, "`silent` must be a list of token ids, got 3"),
        ({"silent": ["a"]}, "`silent` must be a list of token ids, got ('a',)"),
        *(
            ({"latents": number}, f"damaged: concepts.json: expected a list of {number} names; take the files of")
            for number in (LATENTS - 1, LATENTS + 1)
        ),
        ({"latents": str(LATENTS)}, f"`latents` must be a whole number from 1 to 1,000,000, got '{LATENTS}'"),
        ({"latents": 10**12}, f"`latents` must be a whole number from 1 to 1,000,000, got {10**12}"),
    ],
)
def test_damaged_folders(model, change, said, tmp_path):
    folder = copied(model, tmp_path / "damaged")
    edit_json(folder / "latent.json", **change)
    assert said in build_refusal(folder)


def test_weights_of_another_model(model, tmp_path):
    folder, latents = copied(model, tmp_path / "damaged"), LATENTS + 1
    file = folder / "latent.safetensors"
    edit_json(folder / "latent.json", latents=latents)
    (folder / "concepts.json").write_text(json.dumps([""] * latents))
    shapes = f"expected weights ({latents}, 32) and biases ({latents},), got ({LATENTS}, 32) and ({LATENTS},)"
    assert build_refusal(folder) == f"{file}: {shapes}; take the files of one model"
    save_file({"weight": torch.full((latents, 32), torch.nan), "bias": torch.zeros(latents)}, file)
    assert build_refusal(folder) == f"{file}: has numbers that are not finite; copy the model again"


def test_vectors_of_documents_are_none_of_queries(model, index, collection, tmp_path):
    """Queries have other weights, which only the index gives."""
    for name in (f"bm25+latent:{model}", f"latent:{model}"):
        file = str(encode_collection(collection, tmp_path / "v", name, existing="overwrite"))
        said = (
            f"{file}: has vectors of documents, and queries of {name} have other weights, which depend on the index; "
            f"name it as --encoder {name}"
        )
        assert refusal(query_encoder, file, None, error=EncodingError) == said
        with open_reader(index) as reader:
            assert refusal(query_encoder, file, reader, error=EncodingError) == said


@pytest.mark.parametrize("name", ["latent.safetensors", "concepts.json", "config.json", "model.safetensors"])
def test_missing_files(model, name, tmp_path):
    folder = copied(model, tmp_path / "damaged")
    (folder / name).unlink()
    assert name.partition(".")[0] in build_refusal(folder)


def test_a_text_of_silent_tokens_has_no_vector(model, tmp_path):
    collection = write_jsonl(tmp_path / "d.jsonl", {"id": "a", "contents": "the of ."}, {"id": "b", "contents": "king"})
    manifest = build_index(collection, tmp_path / "i", f"latent:{model}")
    assert (manifest.documents, manifest.empty_documents) == (2, 1)
    with SignedImpactSearcher(tmp_path / "i") as searcher:
        assert [hit.docid for hit in searcher.search("king")] == ["b"]
        assert searcher.search("of the") == []


def test_the_default_share_of_latents(model, tmp_path):
    """A concept counts more than a fortieth of a word that is in as many documents, and less than a tenth."""
    folder = copied(model, tmp_path / "model")
    lit = torch.zeros(LATENTS)
    lit[0] = 1.0  # by each token
    save_file({"weight": torch.zeros(LATENTS, 32), "bias": lit}, folder / "latent.safetensors")
    vectors = {"tenth": {"film": 26}, "concept": {"~0": 15}, "fortieth": {"film": 6}, "faint": {"~0": 1}}  # of 256
    documents = [{"id": docid, "vector": vector} for docid, vector in vectors.items()]
    build_index(write_jsonl(tmp_path / "v.jsonl", *documents), tmp_path / "index", f"bm25+latent:{folder}")
    with SignedImpactSearcher(tmp_path / "index") as searcher:
        assert [hit.docid for hit in searcher.search("film")] == [*vectors]


def test_the_impacts_of_latents_have_one_scale(model, collection, tmp_path):
    said = refusal(
        build_index, collection, tmp_path / "index", f"bm25+latent:{model}", impact_scale=100, error=EncodingError
    )
    what = "the impacts of latents have the scale of bm25, 256, not 100; leave out --impact-scale"
    assert said == f"bm25+latent:{model}: {what}"


def test_names_that_cannot_be_stored(model, tmp_path):
    folder = copied(model, tmp_path / "damaged")
    (folder / "concepts.json").write_text(json.dumps(["\ud800"] * LATENTS))
    assert "concepts.json: expected a list of" in build_refusal(folder)


def test_a_model_that_is_moved_while_it_is_in_use(model, index, tmp_path):
    moved = copied(model, tmp_path / "moved")
    with open_reader(index) as reader:
        encoder = query_encoder(f"bm25+latent:{moved}", reader)  # loads no network yet
        moved.rename(tmp_path / "elsewhere")
        assert refusal(encoder.encode_batch, ["a text of this test alone"], error=EncodingError) == (
            f"{moved}/latent.safetensors: cannot be read: no such file or directory; put the files of the model back"
        )


def test_an_update_asks_for_the_place_of_a_moved_model(model, collection, tmp_path):
    placed, moved = copied(model, tmp_path / "placed"), tmp_path / "moved"
    build_index(collection, tmp_path / "index", f"bm25+latent:{placed}")
    placed.rename(moved)
    more = write_jsonl(tmp_path / "more.jsonl", {"id": "more", "contents": "another text"})
    assert refusal(update_index, tmp_path / "index", more, error=IndexFormatError) == (
        f"there is no model {placed}; give its new place, bm25+latent:FOLDER, as --encoder"
    )
    assert update_index(tmp_path / "index", more, encoder=f"bm25+latent:{moved}").inserted == 1
