"""Late interaction by models that sentence-transformers makes, against numpy and the library's own scores."""

import json
import shutil
from functools import partial

import numpy as np
import pytest
from checkpoints import (
    edit_json,
    needs_sentence_transformers,
    save_weights,
    write_dense,
    write_late_interaction,
    write_pylate,
    write_stanford,
)
from film_index import FILMS, build
from refusals import refusal

from pyserini_compneg import SignedImpactSearcher
from pyserini_compneg.baselines import (
    LateInteraction,
    Reranked,
    TokenIndex,
    check_pair_scorer,
    dense_encoder,
    pair_scorer,
    token_matches,
)
from pyserini_compneg.commands.main import main
from pyserini_compneg.expression import parse
from pyserini_compneg.support.errors import EncodingError

pytest.importorskip("torch", reason="sentence-transformers runs on torch")
library = needs_sentence_transformers()
pytestmark = pytest.mark.slow

EXPANSION = {"strategy": "fixed", "attend": False, "length": 12}
KINDS = {
    "plain": write_late_interaction,
    "expanded": lambda folder: write_late_interaction(folder, expansion=EXPANSION),
    "mean": lambda folder: write_late_interaction(folder, "meanmaxsim"),
    "pylate": write_pylate,
    "stanford": write_stanford,
}
QUERIES = ["spy films", "a western", "comedies, or dramas"]
DOCUMENTS = ["A spy comedy.", "", "!!!", "western " * 400, "Spies, and a clumsy film: drama."]
TEXTS = {docid: f"{title}\n{text}" for docid, (title, text) in FILMS.items()}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    made = {}

    def folder(kind):
        if kind not in made:
            made[kind] = KINDS[kind](tmp_path_factory.mktemp(kind) / "model")
        return made[kind]

    return folder


@pytest.fixture(scope="module")
def model(folders):
    return LateInteraction(str(folders("expanded")))


def best(query, document):
    """The largest cosine of each vector of a query."""
    return [max(float(np.dot(q, d)) for d in document) for q in query]


@pytest.mark.parametrize("kind", KINDS)
def test_scores_add_the_best_similarities(folders, kind):
    scorer = pair_scorer(str(folders(kind)))
    assert isinstance(scorer, LateInteraction) and check_pair_scorer(scorer.name) == "late-interaction"
    other = library.MultiVectorEncoder(str(folders(kind)), device="cpu")
    queries = other.encode_query(QUERIES, convert_to_numpy=True, show_progress_bar=False)
    documents = other.encode_document(DOCUMENTS, convert_to_numpy=True, show_progress_bar=False)
    pairs = [(query, document) for query in QUERIES for document in DOCUMENTS]
    found = scorer.scores(pairs).reshape(len(QUERIES), len(DOCUMENTS))
    total = np.mean if kind == "mean" else np.sum
    np.testing.assert_allclose(found, [[total(best(q, d)) for d in documents] for q in queries], atol=1e-4)
    np.testing.assert_allclose(found, other.similarity(queries, documents).numpy(), atol=1e-4)
    assert len({*found.round(5).ravel()}) == found.size


def test_the_folder_says_which_tokens_count(folders, model):
    (query,), (document,) = model.encode_queries(["Spy films"]), model.encode_documents(["Spy, films!"])
    assert query.tokens[:1] + query.tokens[-3:] == ["[CLS]", "[MASK]", "[MASK]", "[MASK]"]
    assert len(query.tokens) == len(query.vectors) == 12
    assert {"spy", "films"} < {*document.tokens} and not {",", "!", ":"} & {*document.tokens}
    np.testing.assert_allclose(np.linalg.norm(query.vectors, axis=1), 1, rtol=1e-5)
    (stanford,) = LateInteraction(str(folders("stanford"))).encode_queries(["a spy"])
    assert stanford.tokens[:4] == ["[CLS]", "film", "a", "spy"]
    assert stanford.tokens.count("[MASK]") == 7
    (long,) = model.encode_documents(["western " * 400])
    assert len(long.tokens) <= 24


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return build(tmp_path_factory.mktemp("late"), store_raw=True)


@pytest.fixture
def searcher(index):
    with SignedImpactSearcher(index) as opened:
        yield opened


def part(model, document, text, *without):
    """The score of a text whose tokens do not count if they are among those of other texts."""
    (query, *others), (read,) = model.encode_queries([text, *without]), model.encode_documents([document])
    seen = {token for other in others for token in other.tokens}
    kept = [vector for token, vector in zip(query.tokens, query.vectors, strict=True) if token not in seen]
    return float(np.sum(best(kept, read.vectors)))


def both(a, b):
    return (min(a, b) + (a + b) / 2) / 2


COMPOSED = {
    "spy films": lambda s: s("spy films"),
    "spy OR western": lambda s: max(s("spy"), s("western")),
    "spy AND comedy": lambda s: both(s("spy"), s("comedy")),
    "spy films NOT films": lambda s: s("spy films"),
    "spy films NOT comedy films": lambda s: s("spy films") - s("comedy films", "spy films") / 2,
    "(spy OR a western) NOT (drama NOT spy comedy)": lambda s: (
        max(s("spy"), s("a western"))
        - (s("drama", "spy", "a western") - s("spy comedy", "spy", "a western", "drama") / 2) / 2
    ),
    "(spy NOT drama NOT clumsy) AND comedy": lambda s: (
        both(s("spy"), s("comedy")) - max(s("drama", "spy", "comedy"), s("clumsy", "spy", "comedy")) / 2
    ),
}


def scaled(scores):
    return [(score - min(scores)) / ((max(scores) - min(scores)) or 1.0) for score in scores]


def test_atoms_are_composed_and_what_is_wanted_is_not_excluded(searcher, model):
    """With a share of 1, the ranking is that of the composed scores, of atoms that are scaled."""
    queries = list(COMPOSED)
    found = searcher.batch_search(queries, queries, 10, method=Reranked(model, share=1))
    for query, composed in COMPOSED.items():
        docids = [hit.docid for hit in found[query]]
        columns = {}

        def score(place, *texts, docids=docids, columns=columns):
            if texts not in columns:
                columns[texts] = scaled([part(model, TEXTS[docid], *texts) for docid in docids])
            return columns[texts][place]

        expected = scaled([composed(partial(score, place)) for place in range(len(docids))])
        assert len(expected) > 1
        assert [hit.score for hit in found[query]] == pytest.approx(expected, abs=1e-4)


def test_all_documents_are_ranked(model):
    documents = [*DOCUMENTS, *DOCUMENTS[:1]]
    docids = [f"d{number}" for number in range(len(documents))]
    index = TokenIndex(docids[::-1], lambda: iter(documents[::-1]), model)
    queries = list(map(parse, COMPOSED))
    rankings = index.search(queries, len(documents))
    for composed, ranking in zip(COMPOSED.values(), rankings, strict=True):
        scores = {
            docid: composed(lambda *texts, d=document: part(model, d, *texts))
            for docid, document in zip(docids, documents, strict=True)
        }
        assert {hit.docid: hit.score for hit in ranking} == pytest.approx(scores, abs=1e-4)
        assert ranking == sorted(ranking, key=lambda hit: (-hit.score, hit.docid))
    assert index.search(queries, 5) == [ranking[:5] for ranking in rankings]


def test_blocks_and_documents_that_are_forgotten_change_nothing(model, monkeypatch):
    docids, queries = list("abcde"), [parse("spy NOT western")]
    whole = TokenIndex(docids, lambda: iter(DOCUMENTS), model).search(queries, 5)
    monkeypatch.setattr("pyserini_compneg.baselines.token_index._BLOCK", 2)
    again = TokenIndex(docids, lambda: iter(DOCUMENTS), model).search(queries, 5)
    assert [hit.docid for hit in again[0]] == [hit.docid for hit in whole[0]]
    monkeypatch.setattr("pyserini_compneg.baselines.late_interaction._KEPT_DOCUMENTS", 2)
    pairs = [("spy", text) for text in DOCUMENTS]
    before = model.scores(pairs)
    encode, asked = model.encode_documents, []
    monkeypatch.setattr(model, "encode_documents", lambda texts: asked.append(list(texts)) or encode(texts))
    np.testing.assert_allclose(model.scores(pairs), before, atol=1e-4)
    assert asked == [DOCUMENTS[:3]]


def test_what_each_token_met(searcher, model):
    found = token_matches(searcher, model, "spy films NOT comedy films", ["d1", "d2"])
    assert list(found) == ["d1", "d2"]
    for docid, (wanted, excluded) in found.items():
        assert (wanted.text, excluded.text) == ("spy films", "comedy films")
        assert wanted.score == pytest.approx(part(model, TEXTS[docid], "spy films"), abs=1e-4)
        assert excluded.score == pytest.approx(-part(model, TEXTS[docid], "comedy films", "spy films"), abs=1e-4)
        tokens = [match.token for match in wanted.tokens]
        assert "films" in tokens and "[MASK]" in tokens
        assert not {"films", "[MASK]", "[CLS]"} & {match.token for match in excluded.tokens}
        (document,) = model.encode_documents([TEXTS[docid]])
        (query,) = model.encode_queries(["spy films"])
        for match, vector in zip(wanted.tokens, query.vectors, strict=True):
            products = document.vectors @ vector
            assert match.similarity == pytest.approx(products.max(), abs=1e-5)
            assert match.met == document.tokens[products.argmax()]


def test_the_command_shows_what_each_token_met(folders, index, capsys):
    folder = str(folders("plain"))
    command = ["explain", "--index", str(index), "--query", "spy NOT comedy", "--docid", "d1", "--rerank", folder]
    assert main(command) == 0
    lines = [line.split() for line in capsys.readouterr().out.split("what each token met")[1].splitlines()]
    assert [line for line in lines if len(line) == 1] == [["spy"], ["comedy"]]
    wanted, excluded = (float(line[1]) for line in lines if line[:1] == ["score"])
    assert wanted > 0 > excluded
    assert main([*command, "--output-format", "json"]) == 0
    (parts,) = json.loads(capsys.readouterr().out)["matches"].values()
    assert [(one["text"], round(one["score"], 3)) for one in parts] == [("spy", wanted), ("comedy", excluded)]
    assert [sorted(token) for token in parts[1]["tokens"]] == [["met", "similarity", "token"]] * len(parts[1]["tokens"])


def test_only_late_interaction_has_tokens_to_show(index, tmp_path, capsys):
    folder = str(write_dense(tmp_path / "dense"))
    command = ["explain", "--index", str(index), "--query", "spy", "--rerank", folder]
    capsys.readouterr()
    assert main([*command, "--docid", "d1"]) == 2
    said = "has no vectors of tokens; explain takes a model of late interaction, such as ColBERT"
    assert f"{folder}: {said}" in capsys.readouterr().err
    assert main(command) == 2
    assert "--rerank needs --docid, the documents whose tokens are shown" in capsys.readouterr().err


def test_bad_folders_are_refused_in_one_line(folders, tmp_path):
    from safetensors.torch import load_file

    def copy(kind="expanded"):
        place = tmp_path / str(len(list(tmp_path.iterdir())))
        return shutil.copytree(folders(kind), place)

    def refused(folder):
        message = refusal(pair_scorer, str(folder), error=EncodingError)
        assert message == refusal(dense_encoder, str(folder), error=EncodingError)
        assert message.startswith(f"{folder}: ")
        return message.removeprefix(f"{folder}: ")

    folder = copy()
    modules = json.loads((folder / "modules.json").read_text())
    (folder / "modules.json").write_text(json.dumps([module for module in modules if "Dense" not in module["type"]]))
    kinds = "Transformer, MultiVectorMask, Normalize"
    assert refused(folder) == f"has no Dense after a Transformer, only {kinds}; get a whole model"
    (folder / "modules.json").unlink()
    assert refused(folder) == "has no Dense after a Transformer, only no modules.json; get a whole model"
    pooled = {
        "type": "sentence_transformers.multi_vector_encoder.modules.HierarchicalTokenPooling",
        "path": "4_Pooling",
    }
    (folder / "modules.json").write_text(json.dumps([*modules, pooled]))
    said = "HierarchicalTokenPooling is no module of late interaction that is supported here"
    assert refused(folder) == f"{said}; expected Transformer, Dense, MultiVectorMask, Normalize"
    (folder / "modules.json").write_text(json.dumps([*modules, {"type": "torch.nn.Linear", "path": ""}]))
    assert refused(folder).startswith("needs custom code (modules.json has the class 'torch.nn.Linear')")
    folder = copy()
    edit_json(folder / "config_sentence_transformers.json", similarity_fn_name="xtr")
    assert refused(folder) == "its similarity_fn_name must be one of maxsim, meanmaxsim, got 'xtr'"
    folder = copy()
    edit_json(folder / "sentence_bert_config.json", query_expansion=EXPANSION | {"strategy": "twice"})
    assert refused(folder).startswith("the model cannot be loaded: query_expansion['strategy'] must be one of")
    folder = copy()
    edit_json(folder / "1_Dense" / "config.json", in_features=31)
    assert refused(folder).startswith("the model cannot be loaded: ")
    save_weights(
        folder / "1_Dense",
        {"linear.weight": load_file(folder / "1_Dense" / "model.safetensors")["linear.weight"][:, :31]},
    )
    assert refused(folder) == "its Dense takes vectors of 31 numbers, and gets 32; get a whole model"
    (folder / "1_Dense" / "model.safetensors").unlink()
    assert refused(folder).startswith("the model cannot be loaded: ")
    folder = copy("stanford")
    weights = load_file(folder / "model.safetensors")
    save_weights(folder, {name: tensor for name, tensor in weights.items() if name != "linear.weight"})
    assert refused(folder) == "the model cannot be loaded: no 'linear.weight'"


def test_damaged_weights(folders, tmp_path):
    from safetensors.torch import load_file

    folder = shutil.copytree(folders("plain"), tmp_path / "damaged")
    weights = load_file(folder / "1_Dense" / "model.safetensors")
    weights["linear.weight"].fill_(float("nan"))
    save_weights(folder / "1_Dense", weights)
    message = refusal(LateInteraction(str(folder)).scores, [("a", "b")], error=EncodingError)
    assert message == f"{folder}: gives vectors of numbers that are not finite; its weights are damaged"
