"""``bm25+MODEL``: two spaces of terms in one vector, their scores in one sum, and what is refused."""

import math
import shutil

import pytest
from index_folders import postings
from json_lines import write_jsonl
from lookup_encoder import LookupEncoder
from refusals import refusal
from stand_in_encoder import StandInEncoder, vector

from pyserini_compneg import Operators, SignedImpactSearcher, build_index
from pyserini_compneg.commands.compose import main as compose
from pyserini_compneg.commands.reproduce import main as reproduce
from pyserini_compneg.commands.search import main as search
from pyserini_compneg.display import explain_query
from pyserini_compneg.display.query_explanation import to_object
from pyserini_compneg.encode import Bm25DocumentEncoder, document_encoders, query_encoder
from pyserini_compneg.encode.corpus import encode_collection
from pyserini_compneg.encode.hybrid import PREFIX, HybridDocumentEncoder, HybridQueryEncoder, joined, side
from pyserini_compneg.index import verify_index
from pyserini_compneg.lucene import ImpactReader, Manifest, analyze
from pyserini_compneg.support.errors import CompNegError, EncodingError

TEXTS = ["A spy comedy about a clumsy spy.", "A serious spy drama.", "", "Westerns, with horses and the law"]
IDS = [f"d{number}" for number in range(len(TEXTS))]


@pytest.fixture
def collection(tmp_path):
    return write_jsonl(tmp_path / "c.jsonl", *({"id": i, "contents": text} for i, text in zip(IDS, TEXTS, strict=True)))


@pytest.mark.parametrize("sign", [PREFIX, "＠", "﹫"])
def test_no_term_of_bm25_begins_with_the_prefix(sign):
    """Other signs may: the analysis takes a:b and _a for words, and #️⃣ and *️⃣, which are emoji."""
    signs = ["{0}a", "a{0}b", "{0}{0}a", "1{0}1", "_{0}_", "東{0}京", "{0}\ufe0f\u20e3", "a.{0}b", "😀{0}", "{0}##s"]
    terms = [term for terms in analyze([text.format(sign) for text in signs]) for term in terms]
    assert terms
    assert not [term for term in terms if sign in term]


def test_documents_by_hand():
    """The average length is 4."""
    encoder = HybridDocumentEncoder(Bm25DocumentEncoder(4.0), {PREFIX: StandInEncoder(precision="int8")})
    ((first,), (second, empty)) = encoder.stream(iter([["The bird flies."], ["birds", ""]]))
    assert first == pytest.approx({"bird": 1 / 1.72, "fli": 1 / 1.72, "@bird": 1.33333, "@flies.": 2.0, "@the": 1.0})
    assert second == pytest.approx({"bird": 1 / 1.63, "@birds": 1.66667})
    assert empty == {}
    assert (encoder.impact_scale, encoder.signed, encoder.most_lines) == (256, False, None)
    model = {"model": "0123456789abcdef", "precision": "int8"}
    bm25 = {"k1": 0.9, "b": 0.4, "average_length": 4.0}
    assert encoder.settings == {**bm25, **model}


@pytest.mark.parametrize(
    ("weight", "expected"),
    [(1.0, {"spi": 3.0, "@spy": 2.0, "@##s": -1.0}), (0.5, {"spi": 3.0, "@spy": 1.0, "@##s": -0.5}), (0, {"spi": 3.0})],
)
def test_queries_by_hand(weight, expected):
    bm25, model = LookupEncoder({"spies": {"spi": 3.0}}), LookupEncoder({"spies": {"spy": 2.0, "##s": -1.0}})
    assert HybridQueryEncoder(bm25, {PREFIX: (model, weight)}).encode_batch(["spies", "x"]) == [expected, {}]


def test_the_words_are_those_of_bm25():
    bm25, model = LookupEncoder({"spies": {"spi": 3.0}}), LookupEncoder({"it": {"it": 1.0}})
    assert HybridQueryEncoder(bm25, {PREFIX: (model, 0.2)}).words(["spies", "it"]) == [["spi"], []]
    signs = LookupEncoder({"@gida": {"@gida": 1.0}})  # of a language whose words are split at blanks
    assert HybridQueryEncoder(signs, {PREFIX: (model, 0.2)}).words(["@gida"]) == [["%40gida"]]


def test_terms_that_collide():
    assert joined({"@spy": 1.0, "spi": 2.0}, {PREFIX: {"spy": 3.0}}) == {"%40spy": 1.0, "spi": 2.0, "@spy": 3.0}
    assert joined({}, {PREFIX: {"∩": 1.0, "¬": 1.0, "∩x": 1.0}}) == {"@∩": 1.0, "@¬": 1.0, "@%E2%88%A9x": 1.0}


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ("spi", "bm25"),
        ("@##s", "model"),
        ("¬@spy", "model"),
        ("@∩", "model"),
        ("comedi∩spi", "bm25"),
        ("@comedy∩@spy∩@film", "model"),
        ("@comedy∩spi", "both"),
        ("conjunction of 3", "both"),
    ],
)
def test_the_side_of_a_term(term, expected):
    assert side(term) == expected


@pytest.fixture
def stand_in(monkeypatch):
    monkeypatch.setattr(document_encoders, "_model_encoder", lambda *_: StandInEncoder())


@pytest.mark.parametrize("options", [{}, {"bm25": {"k1": 2.0, "b": 0.0}}, {"pair_terms": 3}])
def test_each_space_has_the_impacts_of_its_own_index(tmp_path, collection, stand_in, options):
    manifest = build_index(collection, tmp_path / "both", "bm25+owner/m", **options)
    assert manifest.encoder == "bm25+owner/m"
    assert manifest.settings["average_length"] == 11 / 3
    assert (manifest.impact_scale, manifest.empty_documents) == (256.0, 1)
    assert verify_index(tmp_path / "both") == len(TEXTS)
    build_index(collection, tmp_path / "bm25", "bm25", bm25=options.get("bm25"))
    build_index(collection, tmp_path / "model", "owner/m", impact_scale=256.0)
    assert postings(tmp_path / "both", "spy") == postings(tmp_path / "bm25", "spy") != {}
    for word in {word for text in TEXTS for word in vector(text)}:
        assert postings(tmp_path / "both", f"@{word}") == postings(tmp_path / "model", word) != {}


def test_vectors_in_shards_make_the_same_index(tmp_path, collection, stand_in):
    class Loaded(HybridDocumentEncoder):
        def __init__(self):
            super().__init__(Bm25DocumentEncoder(11 / 3), {PREFIX: StandInEncoder()})

    for number in range(2):
        encode_collection(collection, tmp_path / "v", "bm25+m", model=Loaded(), shard_id=number, shard_num=2)
    made = build_index(tmp_path / "v", tmp_path / "a", "bm25+m")
    assert made == build_index(collection, tmp_path / "b", "bm25+m")
    for term in ("spy", "@spy", "@a"):
        assert postings(tmp_path / "a", term) == postings(tmp_path / "b", term) != {}
    said = f"{tmp_path / 'v'}: the vectors are of 'bm25+m', not of 'm'"
    assert refusal(build_index, tmp_path / "v", tmp_path / "c", "m") == said
    said = "bm25+m: the documents bring their vectors, so k1, b and language have no use"
    assert refusal(build_index, tmp_path / "v", tmp_path / "c", "bm25+m", bm25={"b": 0.5}, error=EncodingError) == said


@pytest.mark.parametrize(
    ("encoder", "said"),
    [
        ("bm25+", "'bm25+' names no model; write bm25+FOLDER, or bm25+ and a name of the hub"),
        ("bm25+ ", "'bm25+ ' names no model; write bm25+FOLDER, or bm25+ and a name of the hub"),
        (
            "bm25+bm25",
            "bm25 is not a model; index and search take --encoder bm25, other commands a model, or bm25+MODEL",
        ),
    ],
)
def test_names_without_a_model(tmp_path, collection, encoder, said):
    assert refusal(build_index, collection, tmp_path / "index", encoder, error=EncodingError) == said
    assert refusal(encode_collection, collection, tmp_path / "v", encoder, error=EncodingError) == said
    build_index(collection, tmp_path / "index")
    with ImpactReader(tmp_path / "index") as reader:
        reader._opened.manifest = None
        assert refusal(query_encoder, encoder, reader, error=EncodingError) == said


def test_encoded_queries_have_all_sides_of_three(tmp_path, collection):
    vectors = write_jsonl(tmp_path / "v.jsonl", {"id": "d0", "vector": {"spy": 1, "@spy": 1, "~1": 1}})
    build_index(vectors, tmp_path / "index", "bm25+owner/m+latent:owner/l")
    atoms = write_jsonl(tmp_path / "a.jsonl", {"text": "spy", "vector": {"spy": 1, "@spy": 1}})
    said = (
        f"{atoms}: has no terms of the latent model, which begin with '~', and {tmp_path / 'index'} needs terms of all"
    )
    assert refusal(SignedImpactSearcher, tmp_path / "index", atoms, error=EncodingError) == said


def test_a_weight_is_for_two_spaces(tmp_path, collection, capsys):
    build_index(collection, tmp_path / "index")
    atoms = write_jsonl(tmp_path / "a.jsonl", {"text": "spy", "vector": {"spy": 1}, "encoder": "bm25"})
    only = ", so --model-weight, which is for bm25+MODEL, has no use"
    for name, why in (
        ("bm25", "has no such part"),
        (atoms, "vectors that were encoded elsewhere are taken as they are"),
    ):
        said = refusal(SignedImpactSearcher, tmp_path / "index", name, model_weight=1.0, error=EncodingError)
        assert said == f"{name}: {why}{only}"
    for weight in (math.nan, -1, math.inf, 1e30, 1e-30, "1", True):
        said = f"model_weight must be 0, or a number from 1e-06 to 1e+06, got {weight!r}"
        assert refusal(SignedImpactSearcher, tmp_path / "index", model_weight=weight, error=CompNegError) == said
    for value in ("x", "-1", "nan"):
        assert search(["--index", str(tmp_path / "index"), "--query", "spy", f"--model-weight={value}"]) == 2
        assert f"--model-weight: must be 0, or a number from 1e-06 to 1e+06, got {value}\n" in capsys.readouterr().err


def test_another_encoder_than_the_indexs(tmp_path, collection, stand_in):
    for name in ("bm25", "owner/m", "bm25+owner/m"):
        build_index(collection, tmp_path / name.replace("/", "-"), name)
    said = "{} was encoded with {!r}, the queries with {!r}; use the index's encoder"
    for made, asked in (("bm25", "bm25+owner/m"), ("bm25+owner/m", "owner/m"), ("owner/m", "bm25+owner/m")):
        index = tmp_path / made.replace("/", "-")
        assert refusal(SignedImpactSearcher, index, asked, error=CompNegError) == said.format(index, made, asked)
    assert refusal(query_encoder, "bm25+owner/m", None, error=CompNegError) == (
        "bm25+owner/m weighs a query's terms by the statistics of an index; name the --index"
    )


@pytest.mark.parametrize(
    ("terms", "missing"),
    [(["spy", "fli"], "of the model, which begin with '@'"), (["@spy"], "of bm25"), (["spy", "@spy"], None)],
)
def test_encoded_queries_have_both_sides(tmp_path, collection, stand_in, terms, missing):
    build_index(collection, tmp_path / "index", "bm25+owner/m")
    atoms = write_jsonl(tmp_path / "a.jsonl", *({"text": term, "vector": {term: 1}} for term in terms))
    if missing is None:
        with SignedImpactSearcher(tmp_path / "index", atoms) as searcher:
            assert [hit.docid for hit in searcher.search("@spy OR spy")] == ["d0", "d1"]
        return
    said = f"{atoms}: has no terms {missing}, and {tmp_path / 'index'} needs terms of both"
    assert refusal(SignedImpactSearcher, tmp_path / "index", atoms, error=EncodingError) == said
    named = write_jsonl(tmp_path / "b.jsonl", {"text": "x", "vector": {terms[0]: 1}, "encoder": "bm25+owner/m"})
    SignedImpactSearcher(tmp_path / "index", named).close()  # its atoms may happen to have terms of one side


def test_an_explanation_says_the_sides(tmp_path, collection, stand_in):
    build_index(collection, tmp_path / "index", "bm25+owner/m", store_raw=True)
    vectors = {"a": {"spy": 2.0, "@a": 1.0}, "b": {"@clumsy": 1.0}}
    with SignedImpactSearcher(tmp_path / "index", LookupEncoder(vectors), Operators(intersection="cpt")) as searcher:
        (document,) = to_object(explain_query(searcher, "a AND b", ["d0"]))["documents"]
        assert {part["term"] for part in document["contributions"]} == {"@clumsy∩spy", "@a∩@clumsy"}
        assert list(document["sides"]) == ["model", "both"]
        assert sum(document["sides"].values()) == pytest.approx(document["score"])


@pytest.fixture
def model(checkpoints, exported, tmp_path):
    """The folder of a tiny model, which a test may move."""
    for package in ("torch", "transformers", "onnxscript", "onnxruntime"):
        pytest.importorskip(package, reason="models are exported by torch, and run by onnxruntime")
    exported("bert")
    return shutil.copytree(checkpoints.bert, tmp_path / "model")


def scores(index, **options):
    with SignedImpactSearcher(index, **options) as searcher:
        return searcher.score("spy drama", IDS)


@pytest.mark.slow
@pytest.mark.parametrize(("weight", "factor"), [(None, 0.2), (0.5, 0.5), (0, 0.0)])
def test_the_score_is_the_sum_of_both(tmp_path, collection, model, weight, factor):
    units = {}
    for name in ("bm25", f"{model}", f"bm25+{model}"):
        build_index(collection, tmp_path / name.replace("/", "-"), name, impact_scale=256.0)
        with SignedImpactSearcher(tmp_path / name.replace("/", "-"), weight_scale=1e4) as searcher:
            units[name] = searcher.unit("spy")
    found = scores(tmp_path / f"bm25+{model}".replace("/", "-"), model_weight=weight, weight_scale=1e4)
    parts = (scores(tmp_path / name.replace("/", "-"), weight_scale=1e4) for name in ("bm25", f"{model}"))
    for score, bm25, own in zip(found, *parts, strict=True):
        expected = (bm25 or 0.0) / units["bm25"] + factor * (own or 0.0) / units[f"{model}"]
        assert (score or 0.0) / units[f"bm25+{model}"] == pytest.approx(expected, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["opensearch", "signed"])
def test_other_kinds_of_models(tmp_path, collection, checkpoints, exported, name):
    """One without a network for queries, and one whose weights may be negative."""
    exported(name)
    folder = getattr(checkpoints, name)
    manifest = build_index(collection, tmp_path / "index", f"bm25+{folder}")
    assert manifest.signed is (name == "signed")
    assert verify_index(tmp_path / "index") == len(TEXTS)
    with SignedImpactSearcher(tmp_path / "index") as searcher:
        (encoded,) = searcher.encoder.encode_batch(["spy drama"])
        assert {term.startswith("@") for term in encoded} == {True, False}
        assert searcher.search("spy NOT drama")


@pytest.mark.slow
def test_a_model_is_its_content(tmp_path, collection, model, capsys):
    """Its folder is moved: vectors, indexes, queries that were encoded, and a build by the old name are accepted."""
    build_index(collection, tmp_path / "index", f"bm25+{model}")
    expected = scores(tmp_path / "index")
    for number in (1, 0):  # each has the average of the whole collection
        place = encode_collection(collection, tmp_path / "v", f"bm25+{model}", shard_id=number, shard_num=2)
    moved = shutil.move(model, tmp_path / "elsewhere")
    said = f"{tmp_path / 'index'}: there is no model {model}; give its new place, bm25+FOLDER, as --encoder"
    assert refusal(scores, tmp_path / "index", error=CompNegError) == said
    assert scores(tmp_path / "index", encoder=f"bm25+{moved}") == expected
    manifest = build_index(tmp_path / "v", tmp_path / "again", f"bm25+{moved}")
    assert manifest.encoder == f"bm25+{moved}"
    assert scores(tmp_path / "again") == expected
    with SignedImpactSearcher(tmp_path / "again", place) as searcher:  # the index names the new place, the file the old
        assert searcher.encoder.encode_batch([TEXTS[0]])[0]["comedi"] > 0
    with (moved / "config.json").open("a") as handle:
        handle.write("\n")
    weights = next(moved.glob("*.safetensors"))
    weights.write_bytes(weights.read_bytes()[:-4] + b"\0\0\1\0")
    refused = refusal(scores, tmp_path / "index", encoder=f"bm25+{moved}", error=CompNegError)
    assert refused.startswith(f"{tmp_path / 'index'} was encoded with 'bm25+{model}' (")
    assert f"'bm25+{moved}' is another model" in refused
    arguments = ["--index", str(tmp_path / "again"), "--query", "spy", "--encoder", f"bm25+{moved}"]
    assert compose([*arguments, "--output", str(moved / "x")]) == 1
    assert f"{moved / 'x'}: would overwrite {moved}; " in capsys.readouterr().err


@pytest.mark.slow
def test_an_index_of_unknown_origin_has_both_spaces(tmp_path, model):
    words = {"time": 9, "bird": 9}
    (encoded,) = query_encoder(str(model), None).encode_batch(["time year film"])
    for name, terms in (
        ("bm25", words),
        ("own", {f"@{term}": 9 for term in encoded}),
        ("both", {**words, f"@{next(iter(encoded))}": 9}),
    ):
        collection = write_jsonl(tmp_path / f"{name}.jsonl", *({"id": str(i), "vector": terms} for i in range(100)))
        build_index(collection, tmp_path / name, "bm25+x")
    with SignedImpactSearcher(tmp_path / "both") as searcher:
        assert searcher.reader.manifest == Manifest("bm25+x", documents=100)
    for name, expected in (("bm25", "the model, which begin with '@'"), ("own", "bm25"), ("both", None)):
        with ImpactReader(tmp_path / name) as reader:
            reader._opened.manifest = None
            if expected is None:
                assert isinstance(query_encoder(f"bm25+{model}", reader), HybridQueryEncoder)
                continue
            said = refusal(query_encoder, f"bm25+{model}", reader, error=CompNegError)
            assert said.startswith(f"{tmp_path / name}: has none of ")
            assert f" common terms of {expected}, so it is not an index of bm25+{model}; " in said


def judged(folder):
    write_jsonl(folder / "corpus.jsonl", *({"_id": i, "text": text} for i, text in zip(IDS, TEXTS, strict=True)))
    write_jsonl(folder / "queries.jsonl", {"_id": "q", "text": "spy drama"})
    (folder / "qrels").mkdir()
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\td1\t1\n")
    return folder


@pytest.mark.slow
def test_the_share_in_a_report(tmp_path, model):
    """A row has its own weight; where it has none, that of the command counts."""
    data = judged(tmp_path / "data")
    rows = "[{name: own, method: operators, model_weight: 0}, {name: given, method: operators}]"
    sections = f"[{{title: All, rows: {rows}}}]"
    (tmp_path / "p.yaml").write_text(
        f"title: P\nabout: x\ndatasets: [beir]\nsplits: [test]\nmeasures: [nDCG@10]\nsections: {sections}\n"
    )
    arguments = ["--dataset", str(data), "--report", str(tmp_path / "r"), "--encoder", f"bm25+{model}"]
    assert reproduce([str(tmp_path / "p.yaml"), *arguments, "--model-weight", "0.5"]) == 0
    index = next((tmp_path / "r" / "indexes").iterdir())
    found = [float(path.read_text().split()[4]) for path in sorted((tmp_path / "r" / "runs").glob("**/*.txt"))]
    expected = [max(filter(None, scores(index, model_weight=weight))) for weight in (0.5, 0)]
    assert found == pytest.approx(expected)
    (tmp_path / "q.yaml").write_text((tmp_path / "p.yaml").read_text().replace(", model_weight: 0", ""))
    arguments[3:] = [str(tmp_path / "s"), "--encoder", "bm25", f"bm25+{model}"]  # the share is that of the second
    assert reproduce([str(tmp_path / "q.yaml"), *arguments, "--model-weight", "0.5"]) == 0
    found = {float(path.read_text().split()[4]) for path in (tmp_path / "s" / "runs").glob("**/*.txt")}
    assert sorted(found) == pytest.approx(sorted(expected), rel=0.05)


def test_a_row_with_a_share_needs_two_spaces(tmp_path, collection, capsys):
    arguments = ["--dataset", str(judged(tmp_path / "data")), "--report", str(tmp_path / "r"), "--encoder", "bm25"]
    assert reproduce(["hybrid", *arguments]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: protocol hybrid: row ")
    assert said.endswith(" says a share of a model; give --encoder bm25+MODEL, not bm25\n")
    assert not (tmp_path / "r").exists()
