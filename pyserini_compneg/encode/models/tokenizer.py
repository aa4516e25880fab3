"""Turns texts into token ids with the tokenizer of a checkpoint, without transformers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pyserini_compneg.encode.models.configuration import install_or_export, optional_json
from pyserini_compneg.support.errors import CompNegError, EncodingError, in_one_line
from pyserini_compneg.support.surrogates import without_halves
from pyserini_compneg.support.vectors import TermSpan, index_term

if TYPE_CHECKING:
    from tokenizers import Tokenizer

TOKENIZER_FILE = "tokenizer.json"

_LARGEST_ID = 4_000_000
"""Four times the largest known vocabulary. All ids up to the largest get a term, so a wrong id would fill the memory.
"""
_MOST_PADDING = 1024
_LONGEST = 512
"""Any limit, to record the side on which texts are cut. :class:`TextTokenizer` sets its own limit."""
_TOKENIZER_FILES = (TOKENIZER_FILE, "vocab.txt", "vocab.json", "tokenizer_config.json")

_SAME_SETTINGS = {
    "lowercase": "do_lower_case",
    "strip_accents": "strip_accents",
    "handle_chinese_chars": "tokenize_chinese_chars",
    "add_prefix_space": "add_prefix_space",
    "direction": "truncation_side",
}
"""Settings of the parts of tokenizer.json, and their names in tokenizer_config.json."""

_DEFAULTS: Mapping[str, Mapping[str, object]] = {
    "BertNormalizer": {"do_lower_case": True, "strip_accents": None, "tokenize_chinese_chars": True},
    "ByteLevel": {"add_prefix_space": False},
}
"""For kinds of normalisers and splitters, the settings of transformers where tokenizer_config.json has none."""

_PARTS_OF_BERT: Mapping[str, Mapping[str, object]] = {
    "normalizer": {"type": "BertNormalizer", "clean_text": True},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "model": {"continuing_subword_prefix": "##", "max_input_chars_per_word": 100},
}
"""What the classes with WordPiece put in place of the parts of tokenizer.json."""

_BYTE_LEVEL = ("bart", "data2vec", "deberta", "gpt2", "ibert", "led", "longformer", "luke", "mra", "mvp", "roberta")
"""How the names of classes, and of types of networks, begin that replace the settings of ByteLevel."""

_AS_SAVED = ("PreTrainedTokenizerFast", "TokenizersBackend", "modernbert", "nystromformer", "xlm-roberta-xl")
"""The classes of transformers that read tokenizer.json as it is, and the types of networks that always have them. Other
classes replace its normaliser and its splitter."""


class TokenIds(NamedTuple):
    ids: list[list[int]]
    cut: list[bool]


class TextTokenizer:
    """Splits texts into tokens as its model does.

    With ``as_transformers``, transformers builds the tokenizer: for BERT and its kin, ``tokenizer_config.json`` then
    replaces parts of ``tokenizer.json``. Otherwise ``tokenizer.json``, or the file that ``folder`` names, is read
    directly, if it exists; it should be one that :meth:`save` wrote. ``terms`` has the term of an index for each token
    id.
    """

    def __init__(
        self,
        folder: Path,
        max_length: int,
        special_tokens: bool = True,
        prompt: str = "",
        lowercase: bool = False,
        as_transformers: bool = False,
        arguments: str = "",
    ) -> None:
        self._tokenizer = _converted(folder, arguments) if as_transformers else _load(folder, arguments)
        if lowercase:
            _lowercase(self._tokenizer)
        self._tokenizer.no_padding()
        side = (self._tokenizer.truncation or {}).get("direction", "right")
        self._tokenizer.enable_truncation(max_length, direction=side)
        self._special_tokens = special_tokens
        self._prompt = prompt
        tokens = self._tokenizer.get_vocab(with_added_tokens=True)
        largest = max(tokens.values(), default=-1)
        if largest > _LARGEST_ID:
            raise EncodingError(
                f"the tokenizer has a token of id {largest}; expected at most {_LARGEST_ID}", where=folder
            )
        self.terms = [f"[id:{number}]" for number in range(largest + 1)]
        for token, number in tokens.items():
            self.terms[number] = index_term(token)
        added = self._tokenizer.get_added_tokens_decoder()
        self.special = frozenset(number for number, token in added.items() if token.special)

    def __call__(self, texts: Sequence[str], prompted: bool = True) -> TokenIds:
        prompt = self._prompt if prompted else ""
        prepared = [prompt + without_halves(text) for text in texts]
        encodings = self._tokenizer.encode_batch_fast(prepared, add_special_tokens=self._special_tokens)
        return TokenIds(
            [encoding.ids for encoding in encodings], [bool(encoding.overflowing) for encoding in encodings]
        )

    def ends(self, texts: Sequence[str]) -> tuple[TokenIds, list[list[int]]]:
        """The token ids of texts, and for each token its end in the text; 0 for special tokens."""
        encodings = self._tokenizer.encode_batch(
            [without_halves(text) for text in texts], add_special_tokens=self._special_tokens
        )
        tokens = TokenIds([one.ids for one in encodings], [bool(one.overflowing) for one in encodings])
        return tokens, [
            [0 if number in self.special else end for number, (_, end) in zip(one.ids, one.offsets, strict=True)]
            for one in encodings
        ]

    def spans(self, texts: Sequence[str]) -> list[list[TermSpan]]:
        """The term of each token of texts, special tokens left out, and its place. Texts of any length are not cut."""
        whole = [without_halves(text) for text in texts]
        encodings = self._tokenizer.encode_batch(whole)
        return [
            sorted(  # parts that were cut off on the left follow the rest
                (
                    TermSpan(self.terms[number], end - len(text[start:end].lstrip()), end)  # some begin with a blank
                    for part in (encoding, *encoding.overflowing)
                    for number, (start, end) in zip(part.ids, part.offsets, strict=True)
                    if start < end and number not in self.special
                ),
                key=lambda span: span[1:],
            )
            for text, encoding in zip(whole, encodings, strict=True)
        ]

    def fit(self, width: int, name: str) -> None:
        """Checks that ids are columns of a model's vectors, and names the padding columns that a model may have."""
        if not width - _MOST_PADDING <= len(self.terms) <= width:
            raise EncodingError(
                f"the tokenizer has {len(self.terms):,} tokens, the model {width:,}; they are not of one model",
                where=name,
            )
        self.terms += [f"[id:{number}]" for number in range(len(self.terms), width)]

    def save(self, path: Path) -> None:
        """Writes ``tokenizer.json``, which can be read without transformers."""
        self._tokenizer.save(str(path))


def _lowercase(tokenizer: Tokenizer) -> None:
    """Puts a lowercasing normaliser before the others, unless there is one, as sentence-transformers 6 does.

    Special tokens in a text are found before normalisation, so they stay what they are.
    """
    from tokenizers import normalizers

    given = tokenizer.normalizer
    parts = [] if given is None else [given]
    if isinstance(given, normalizers.Sequence):
        parts = list(cast("Any", given))
    if not any(isinstance(part, normalizers.Lowercase) for part in parts):
        tokenizer.normalizer = normalizers.Sequence([normalizers.Lowercase(), *parts])


def load_tokenizer(
    folder: Path, failed: str, error: type[CompNegError] = EncodingError, arguments: Mapping[str, Any] | None = None
) -> Any:
    """The tokenizer that transformers builds from a folder, with further arguments."""
    try:
        from transformers import AutoTokenizer
    except ImportError:
        said = "without tokenizer.json, its tokenizer needs transformers"
        raise EncodingError(said, where=folder, remedy=install_or_export()) from None
    with in_one_line(error, failed):
        return AutoTokenizer.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False, **(arguments or {})
        )


def check_direct(folder: Path, arguments: str) -> None:
    """Refuses a ``tokenizer.json`` if transformers, which is not installed, would replace settings in it by others.

    The class of transformers takes them from ``arguments``, from ``tokenizer_config.json``, or from its own defaults.
    """
    config = optional_json(folder / "tokenizer_config.json")
    network, file = optional_json(folder / "config.json"), optional_json(folder / TOKENIZER_FILE)
    for name, has, meant in _replaced(config, network, file, arguments):
        if str(has).lower() != str(meant).lower():
            what = f"`{name}` is {json.dumps(has)} in tokenizer.json, and transformers makes it {json.dumps(meant)}"
            raise EncodingError(what, where=folder, remedy=install_or_export())


def _replaced(
    config: Mapping[str, Any], network: Mapping[str, Any], file: Mapping[str, Any], arguments: str
) -> Iterator[tuple[str, object, object]]:
    """Settings that transformers replaces: the name, the value in tokenizer.json, and that of transformers."""
    named, network_type = config.get("tokenizer_class") or network.get("tokenizer_class"), network.get("model_type")
    parts = [file.get("truncation") or {"direction": "right"}]
    if (named or network_type) and named not in _AS_SAVED and network_type not in _AS_SAVED:
        parts += [file.get("normalizer"), file.get("pre_tokenizer")]
        has = {name: part for name, part in file.items() if isinstance(part, dict)}
        if "max_input_chars_per_word" in has.get("model", {}):  # WordPiece, which old files do not name
            for part, settings in _PARTS_OF_BERT.items():
                yield from ((f"{part}.{key}", has.get(part, {}).get(key), meant) for key, meant in settings.items())
    given = {**config, **json.loads(arguments or "{}")}
    has_default = str(named or network_type).lower().startswith(_BYTE_LEVEL)
    for one in _parts(parts):
        kind = str(one.get("type"))
        defaults = _DEFAULTS.get(kind, {}) if has_default or kind != "ByteLevel" else {}
        meant_by = {**defaults, **given}
        for key, name in _SAME_SETTINGS.items():
            if key in one and name in meant_by:
                yield name, one[key], meant_by[name]


def _parts(part: object) -> Iterator[Mapping[str, Any]]:
    """A part of a tokenizer, and the parts of a sequence."""
    if isinstance(part, dict):
        yield part
        part = list(part.values())
    if isinstance(part, list):
        for inner in part:
            yield from _parts(inner)


def _load(folder: Path, arguments: str) -> Tokenizer:
    from tokenizers import Tokenizer

    file = folder if folder.is_file() else folder / TOKENIZER_FILE
    if not file.is_file():
        return _converted(folder, arguments)
    with in_one_line(EncodingError, f"{file}: no tokenizer", remedy="copy or download it again"):
        return Tokenizer.from_file(str(file))


def _converted(folder: Path, arguments: str) -> Tokenizer:
    if not any((folder / name).is_file() for name in _TOKENIZER_FILES):
        raise EncodingError("no tokenizer: tokenizer.json is missing", where=folder)
    for name in (TOKENIZER_FILE, "tokenizer_config.json"):  # whose faults transformers reports without their names
        optional_json(folder / name, str(folder))
    made = load_tokenizer(folder, f"{folder}: no tokenizer", arguments=json.loads(arguments or "{}"))
    tokenizer: Tokenizer = made.backend_tokenizer
    if tokenizer.get_vocab_size(with_added_tokens=True) == len(tokenizer.get_added_tokens_decoder()):
        said = "no tokenizer: it has only special tokens, and tokenizer.json is missing"
        raise EncodingError(said, where=folder, remedy="copy or download the model again")
    tokenizer.enable_truncation(_LONGEST, direction=made.truncation_side)
    return tokenizer
