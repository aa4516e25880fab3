import json
import shutil
import sys

import pytest

pytest.importorskip("tokenizers", reason="texts are cut into tokens by the package tokenizers")
pytest.importorskip("transformers", reason="tokenizers of checkpoints are written by transformers")

from checkpoints import MAX_LENGTH, ODD_TOKENS, edit_json, write_json, write_tokenizer  # noqa: E402
from refusals import refusal  # noqa: E402

from pyserini_compneg.encode import export  # noqa: E402
from pyserini_compneg.encode.export import static_tokenizer  # noqa: E402
from pyserini_compneg.encode.models import StaticSide  # noqa: E402
from pyserini_compneg.encode.models.tokenizer import TextTokenizer  # noqa: E402
from pyserini_compneg.support.errors import EncodingError, install_hint  # noqa: E402
from pyserini_compneg.support.vectors import is_pseudo_term  # noqa: E402


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("tokenizer")
    write_tokenizer(path)
    return path


def terms(tokenizer, text):
    (ids,) = tokenizer([text]).ids
    return [tokenizer.terms[number] for number in ids]


def refused(folder):
    return refusal(TextTokenizer, folder, 32, error=EncodingError)


def test_tokens_are_those_of_transformers(folder):
    from transformers import AutoTokenizer

    texts = ["Spy films, not comedies!", "", " \t\n", "naïve ÉLITE 東京 😀 ¬ a∩b", "x" * 300, "\x00\x07\u200b\u2028a"]
    texts.append("[CLS] [X]")
    theirs = AutoTokenizer.from_pretrained(folder)(texts, truncation=True, max_length=MAX_LENGTH)["input_ids"]
    assert TextTokenizer(folder, MAX_LENGTH)(texts).ids == theirs


def test_ends_of_tokens_in_their_texts(folder):
    tokenizer = TextTokenizer(folder, 6)
    texts = ["The film, the film again", "[MASK] a"]
    tokens, ends = tokenizer.ends(texts)
    assert tokens == tokenizer(texts)
    assert ends == [[0, 3, 8, 9, 13, 0], [0, 0, 8, 0]]


def test_special_tokens_can_be_left_out(folder):
    tokenizer = TextTokenizer(folder, 32, special_tokens=False)
    assert terms(tokenizer, "the film") == terms(TextTokenizer(folder, 32), "the film")[1:-1] == ["the", "film"]
    assert {tokenizer.terms[number] for number in tokenizer.special} == {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}


def test_cut_texts_are_known(folder):
    tokenizer = TextTokenizer(folder, 8)
    ids, cut = tokenizer(["the " * 6, "the " * 7, "the " * 100_000, ""])
    assert list(map(len, ids)) == [8, 8, 8, 2]
    assert cut == [False, True, True, False]
    assert ids[1] == ids[2] == ids[0]


def test_prompts_and_lower_case(folder):
    tokenizer, plain = TextTokenizer(folder, 8, prompt="the film "), TextTokenizer(folder, 8)
    assert terms(tokenizer, "the") == ["[CLS]", "the", "film", "the", "[SEP]"]
    assert tokenizer(["the " * 4, "the " * 5]).cut == [False, True]
    assert tokenizer(["spy"], prompted=False) == plain(["spy"])
    assert TextTokenizer(folder, 8, lowercase=True)(["SPY Film"]) == plain(["spy film"])


def test_places_of_tokens(folder):
    """In code points of the text itself, also behind the length at which a text is cut."""
    tokenizer, text = TextTokenizer(folder, 8, lowercase=True), "😀 Spy's <b>FILMS</b>, naïve İ\ud800 " * 9
    (spans,) = tokenizer.spans([text])
    pieces = [(text[start:end], term) for term, start, end in spans if text[start:end] != "İ"]
    assert pieces[:3] == [("Spy", "spy"), ("'", "'"), ("s", "s")]
    plain = str.maketrans({"ï": "i", "\ud800": "?"})
    assert all(piece.lower().translate(plain) == term.removeprefix("##") for piece, term in pieces)
    assert sum(term == "spy" for _, term in pieces) == 9
    assert [len(spans) for spans in TextTokenizer(folder, 8).spans(["", "[CLS] the"])] == [0, 1]


def test_half_a_surrogate_pair_is_no_character(folder):
    tokenizer = TextTokenizer(folder, 8)
    assert tokenizer(["a \ud83d b"]) == tokenizer(["a ? b"])
    assert tokenizer([]) == ([], [])


def test_no_token_is_taken_for_a_pair_or_a_complement(folder):
    tokenizer = TextTokenizer(folder, 8)
    assert tokenizer.terms[-len(ODD_TOKENS) :] == ["¬", "∩", "%C2%ACspy", "spy%E2%88%A9film"]
    assert not any(map(is_pseudo_term, tokenizer.terms))
    assert not any(any(map(str.isspace, term)) for term in tokenizer.terms)
    assert len(set(tokenizer.terms)) == len(tokenizer.terms)


def test_tokens_with_spaces_and_gaps_among_the_ids(folder, tmp_path):
    content = json.loads((folder / "tokenizer.json").read_text())
    size = len(content["model"]["vocab"])
    content["model"]["vocab"] |= {"spy film": size + 2, "x\u3000y": size + 3}
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    tokenizer = TextTokenizer(tmp_path, 8)
    assert tokenizer.terms[size:] == [f"[id:{size}]", f"[id:{size + 1}]", "spy%20film", "x%E3%80%80y"]
    content["model"]["vocab"] |= {"z": 1 << 31}  # so many names would fill the memory
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    said = f"the tokenizer has a token of id {1 << 31}; expected at most 4000000"
    assert refused(tmp_path) == f"{tmp_path}: {said}"


def test_a_model_may_have_padding_columns(folder):
    tokenizer = TextTokenizer(folder, 8)
    size = len(tokenizer.terms)
    tokenizer.fit(size + 3, "m")
    assert tokenizer.terms[size:] == [f"[id:{number}]" for number in range(size, size + 3)]


@pytest.mark.parametrize("more", [-1, 1025])
def test_a_tokenizer_of_another_model(folder, more):
    tokenizer = TextTokenizer(folder, 8)
    size = len(tokenizer.terms)
    expected = f"m: the tokenizer has {size:,} tokens, the model {size + more:,}; they are not of one model"
    assert refusal(tokenizer.fit, size + more, "m", error=EncodingError) == expected


def test_a_saved_tokenizer_and_a_vocabulary_alone_are_the_same(folder, tmp_path):
    tokenizer, texts = TextTokenizer(folder, 32), ["Spy films, not comedies!", "naïve ÉLITE", "¬ ∩", "the films " * 20]
    (tmp_path / "saved").mkdir()
    tokenizer.save(tmp_path / "saved" / "tokenizer.json")
    write_tokenizer(tmp_path / "words", "vocab.txt")
    for place in ("saved", "words"):
        again = TextTokenizer(tmp_path / place, 32)
        assert (again.terms, again(texts)) == (tokenizer.terms, tokenizer(texts))


def test_missing_and_damaged_tokenizers(tmp_path):
    assert refused(tmp_path) == f"{tmp_path}: no tokenizer: tokenizer.json is missing"
    file = tmp_path / "tokenizer.json"
    for content in ("{", "", "[]", '{"model": {"type": "Unheard"}}'):
        file.write_text(content)
        assert refused(tmp_path).startswith(f"{file}: no tokenizer: ")
    file.unlink()
    (tmp_path / "tokenizer_config.json").write_text("{")
    assert refused(tmp_path).startswith(f"{tmp_path}: tokenizer_config.json cannot be read: ")
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')
    said = "no tokenizer: it has only special tokens, and tokenizer.json is missing"
    assert refused(tmp_path) == f"{tmp_path}: {said}; copy or download the model again"


def test_packages_that_are_missing(folder, tmp_path, monkeypatch):
    write_tokenizer(tmp_path, "vocab.txt")
    monkeypatch.setitem(sys.modules, "transformers", None)
    TextTokenizer(folder, 8)
    said = "without tokenizer.json, its tokenizer needs transformers"
    remedy = f"{install_hint('torch')}, or name a folder that export --output made"
    assert refused(tmp_path) == f"{tmp_path}: {said}; {remedy}"


def test_the_tokenizer_is_what_transformers_makes_of_it(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    config = json.loads((copy / "tokenizer_config.json").read_text())
    (copy / "tokenizer_config.json").write_text(json.dumps(config | {"do_lower_case": False}))
    texts = ["Spy FILM"]
    theirs = pytest.importorskip("transformers").AutoTokenizer.from_pretrained(copy)(texts)["input_ids"]
    assert TextTokenizer(copy, 16, as_transformers=True)(texts).ids == theirs


NORMALIZER = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None}
NORMALIZER |= {"lowercase": True}
CASED, LOWER = {"normalizer": NORMALIZER | {"lowercase": False}}, {"type": "Lowercase"}
BLANK_FIRST = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
BERT = {"tokenizer_class": "BertTokenizer"}


@pytest.mark.parametrize(
    ("network", "config", "arguments", "parts", "differs"),
    [
        ("bert", {"tokenizer_class": "BertTokenizer", "do_lower_case": False}, "", {}, "do_lower_case"),
        ("bert", {"tokenizer_class": "BertTokenizer"}, '{"do_lower_case": false}', {}, "do_lower_case"),
        ("bert", {"tokenizer_class": "BertTokenizer"}, "", CASED, "do_lower_case"),  # texts are in lower case
        ("bert", {}, "", CASED, "do_lower_case"),
        ("electra", {"tokenizer_class": "ElectraTokenizer"}, "", CASED, "do_lower_case"),
        ("mpnet", {"tokenizer_class": "MPNetTokenizerFast"}, "", CASED, "do_lower_case"),
        ("mpnet", {"strip_accents": False}, "", {}, "strip_accents"),
        ("bert", {"tokenizer_class": "PreTrainedTokenizerFast", "do_lower_case": False}, "", {}, ""),
        ("mpnet", {"tokenizer_class": "MPNetTokenizer"}, '{"do_lower_case": false}', CASED, ""),
        ("electra", {}, "", {}, ""),
        (None, {}, "", CASED, ""),
        (None, {"truncation_side": "left"}, "", {}, "truncation_side"),
        (None, {"truncation_side": "right"}, "", {}, ""),
        ("bert", BERT, "", {"normalizer": None}, "normalizer.type"),
        ("distilbert", {}, "", {"normalizer": {"type": "NFC"}}, "normalizer.type"),
        ("bert", BERT, "", {"normalizer": {"type": "Sequence", "normalizers": [LOWER]}}, "normalizer.type"),
        (None, BERT, "", {"normalizer": LOWER}, "normalizer.type"),
        ("bert", BERT, "", {"normalizer": NORMALIZER | {"clean_text": False}}, "normalizer.clean_text"),
        ("bert", BERT, "", {"pre_tokenizer": {"type": "WhitespaceSplit"}}, "pre_tokenizer.type"),
        ("modernbert", {}, "", {"normalizer": LOWER, "pre_tokenizer": BLANK_FIRST}, ""),
        ("nystromformer", {"tokenizer_class": "RobertaTokenizer"}, "", {"pre_tokenizer": BLANK_FIRST}, ""),
    ],
)
def test_queries_without_a_network_follow_the_rule_of_documents(
    folder, tmp_path, monkeypatch, network, config, arguments, parts, differs
):
    copy, texts = shutil.copytree(folder, tmp_path / "copy"), ["Spy FILM", "the Film naïve"]
    edit_json(copy / "tokenizer_config.json", **{"do_lower_case": None, "tokenizer_class": None} | config)
    edit_json(copy / "tokenizer.json", **parts)
    if network:
        write_json(copy / "config.json", {"model_type": network})
    given = json.loads(arguments or "{}")
    tokenizer = pytest.importorskip("transformers").AutoTokenizer.from_pretrained(copy, **given)
    theirs = tokenizer(texts, add_special_tokens=False, truncation=True, max_length=2)["input_ids"]
    side = StaticSide(copy, None, 2, 2, arguments=arguments)
    for cache in ("first", "second"):
        monkeypatch.setenv("COMPNEG_CACHE", str(tmp_path / cache))
        assert static_tokenizer(side)(texts).ids == theirs
    assert TextTokenizer(copy, 2, False, as_transformers=True, arguments=arguments)(texts).ids == theirs
    monkeypatch.setitem(sys.modules, "transformers", None)
    assert static_tokenizer(side)(texts).ids == theirs  # as it was kept
    monkeypatch.setenv("COMPNEG_CACHE", str(tmp_path / "third"))
    if differs:
        said = refusal(static_tokenizer, side, error=EncodingError)
        assert said.startswith(f"{copy}: `{differs}` is ")
        assert said.endswith(f"; {install_hint('torch')}, or name a folder that export --output made")
    else:
        assert static_tokenizer(side)(texts).ids == theirs


def test_the_tokenizer_in_the_cache(folder, tmp_path, monkeypatch):
    """It is made again if it is damaged, or for another major release of transformers."""
    monkeypatch.setenv("COMPNEG_CACHE", str(tmp_path))
    side, texts = StaticSide(folder, None, 16, 16), ["Spy FILM"]
    expected = static_tokenizer(side)(texts)
    (file,) = tmp_path.glob("tokenizers/*/tokenizer.json")
    file.write_text(file.read_text()[:100])
    assert static_tokenizer(side)(texts) == expected
    edit_json(file, normalizer=None)
    assert static_tokenizer(side)(texts) != expected
    monkeypatch.setattr(export, "transformers_major", lambda: "6")
    assert static_tokenizer(side)(texts) == expected
    assert len([*tmp_path.glob("tokenizers/*/tokenizer.json")]) == 2


def test_texts_may_be_cut_on_the_left(folder, tmp_path):
    copy, texts = shutil.copytree(folder, tmp_path / "copy"), ["the film of a spy and a spy film", "spy"]
    edit_json(copy / "tokenizer_config.json", truncation_side="left")
    theirs = pytest.importorskip("transformers").AutoTokenizer.from_pretrained(copy)
    tokenizer = TextTokenizer(copy, 6, as_transformers=True)
    assert tokenizer(texts) == (theirs(texts, truncation=True, max_length=6)["input_ids"], [True, False])
    assert [term for term, _, _ in tokenizer.spans(texts)[0]] == texts[0].split()
    tokenizer.save(copy / "tokenizer.json")
    assert TextTokenizer(copy, 6)(texts) == tokenizer(texts)
