import json
import lzma

import pytest
from checkpoints import SAMPLE
from json_lines import write_jsonl

pytest.importorskip("onnxruntime", reason="models are run by onnxruntime")

from pyserini_compneg import SignedImpactSearcher, build_index  # noqa: E402
from pyserini_compneg.documents.vector_files import VECTORS_FILE  # noqa: E402
from pyserini_compneg.encode import neural  # noqa: E402
from pyserini_compneg.encode.models import MINI, ModelOptions, model_folder, read_checkpoint  # noqa: E402
from pyserini_compneg.encode.neural import ModelDocumentEncoder, ModelQueryEncoder, checkpoint_hash  # noqa: E402
from pyserini_compneg.encode.sides import load_side  # noqa: E402
from pyserini_compneg.support.vectors import dot, norm  # noqa: E402

TEXTS = {
    "oak": "Oak\nThe oak is a hardwood of the genus Quercus, with acorns in cups.",
    "piano": "Piano\nThe piano is struck by hammers when its keys are pressed.",
    "sparrow": "Sparrow\nThe sparrow nests under roofs and eats seeds.",
    "ray": "Ray\nRay is a 1994 American spy film directed by Ada Lovelace and starring Charles Babbage.",
}


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mini")
    collection = write_jsonl(folder / "d.jsonl", *({"id": name, "contents": text} for name, text in TEXTS.items()))
    build_index(collection, folder / "index", encoder=f"bm25+{MINI}")
    return folder / "index"


def test_a_network_is_loaded_once_for_several_ways_to_prune(monkeypatch):
    loaded = []
    monkeypatch.setattr(neural, "load_side", lambda *given: loaded.append(given) or load_side(*given))
    checkpoint = read_checkpoint(model_folder(MINI))
    spans, encoders = [], []
    for most in (None, 1):
        encoders.append(ModelQueryEncoder(checkpoint, ModelOptions(top_terms=most, batch_size=7)))
        spans.append(encoders[-1].term_spans(["a hardwood"]))
    assert len(loaded) == 1 and spans[0] == spans[1]


def test_texts_of_an_int8_model_run_beside_each_other(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    side = read_checkpoint(model_folder(MINI)).document
    assert load_side(side, ModelOptions(precision="int8"))._model.together == 3


def test_words_are_tokens_without_expansions(index, caplog):
    encoder = ModelQueryEncoder(read_checkpoint(model_folder(MINI)))
    ((film,), vector) = encoder.words(["film"]), encoder.encode_batch(["film"])[0]
    assert film == ["film"] and len(vector) > 1
    with SignedImpactSearcher(index) as searcher:
        assert searcher.encoder.words(["hardwood keys", "the"])[0] == ["hardwood", "kei"]
        left = [hit.docid for hit in searcher.search("(oak AND piano) NOT! keys")]
        assert "oak" in left and "piano" not in left
        assert searcher.search("movies NOT! movies") == searcher.search("movies") != []
    said = "atom 'movies': the index has none of its words, so no document has it"
    assert said in [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize(("query", "found"), [("trees", "oak"), ("musical instruments", "piano"), ("movies", "ray")])
def test_what_bm25_does_not_find_is_found(index, query, found):
    with SignedImpactSearcher(index, model_weight=0.0) as searcher:
        assert searcher.search(query) == []
    with SignedImpactSearcher(index) as searcher:
        assert searcher.search(query)[0].docid == found


def test_the_manifest_names_the_model_of_the_package(index, tmp_path, monkeypatch):
    (tmp_path / MINI).mkdir()  # a folder of the same name is `./mini`
    monkeypatch.chdir(tmp_path)
    build_index(index.parent / "d.jsonl", tmp_path / "here", encoder=f"bm25+{MINI}")
    for folder in (index, tmp_path / "here"):
        assert json.loads((folder / "compneg.json").read_text())["encoder"] == f"bm25+{MINI}"


def test_the_vectors_of_the_sample_are_its_own():
    settings = json.loads((SAMPLE / "vectors" / VECTORS_FILE).read_text())["settings"]
    checkpoint = read_checkpoint(model_folder(MINI))
    assert settings["model"] == checkpoint_hash(checkpoint)
    with lzma.open(next((SAMPLE / "vectors").glob("*.xz")), "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line, _ in zip(lines, range(40), strict=False)]
    options = ModelOptions(threshold=settings["threshold"])
    made = ModelDocumentEncoder(checkpoint, options).encode_batch([record["contents"] for record in records])
    for record, vector in zip(records, made, strict=True):
        shipped = {term[1:]: weight for term, weight in record["vector"].items() if term.startswith("@")}
        assert dot(shipped, vector) > 0.99 * norm(shipped) * norm(vector)  # processors round int8 differently
