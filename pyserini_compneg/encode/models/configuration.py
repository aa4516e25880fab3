"""The JSON files of checkpoints: modules, prompts, lengths of texts, and settings that would run foreign code."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import isnan
from pathlib import Path
from typing import Any, NamedTuple

from pyserini_compneg.support.errors import EncodingError, install_hint
from pyserini_compneg.support.json_objects import json_kind
from pyserini_compneg.support.terminal import shown
from pyserini_compneg.support.vectors import is_number

_LONGEST_INPUT = 512
"""The most tokens of a text, if no file of a checkpoint has a limit. Longer texts are truncated."""

_PADDED_POSITIONS = (
    "roberta",
    "xlm-roberta",
    "camembert",
    "mpnet",
    "longformer",
    "data2vec-text",
    "roberta-prelayernorm",
)
"""Models whose positions start after the padding position, so that the first positions hold no token."""

_SIZES = (
    *("num_hidden_layers", "num_attention_heads", "hidden_size", "intermediate_size", "vocab_size"),
    *("n_layers", "n_heads", "dim", "hidden_dim"),  # the names in distilbert
)
"""Sizes of the network. With a wrong size, transformers may silently build another network."""

_MOST_LAYERS = 1000
"""More layers than any model has. transformers would take minutes and gigabytes before it misses their weights."""

_FILES_WITH_CLASSES = re.compile(r"modules\.json|.*config.*\.json")
"""For each kind of module of sentence-transformers, the name of its configuration file."""

MODULES_FILE = "modules.json"
ROUTER_FILES = ("router_config.json", "config.json")
"""A router's configuration, and its former name."""

_OWN_MODULE = re.compile(r"sentence_transformers\.(\w+\.)*[A-Z]\w*")
_ACTIVATION = re.compile(
    r"torch\.nn\.(modules\.(activation|linear)\.)?"
    r"(ELU|GELU|Hardtanh|Identity|LeakyReLU|LogSigmoid|LogSoftmax|Mish|ReLU6?|SELU|SiLU|Sigmoid|Softmax|Softplus|Tanh)"
)

_NAMES_OF_CODE = {
    "activation_fn": _ACTIVATION,
    "activation_function": _ACTIVATION,
    "sbert_ce_default_activation_function": _ACTIVATION,
    "tokenizer_class": _OWN_MODULE,
    "attn_implementation": re.compile("(?!)"),
    "_attn_implementation": re.compile("(?!)"),
}
"""Settings whose values a library imports and calls if they contain a dot, or downloads if they contain a slash, and
the allowed values."""

_SWITCHES_OF_CODE: Mapping[str, tuple[Any, ...]] = {
    "auto_map": (),
    "weights_only": (True,),
    **dict.fromkeys(("trust_remote_code", "allow_all_kernels", "use_kernels", "kernel_config"), (False, None)),
}
"""Arguments of loaders in a configuration, and the values that run no code from the folder."""

SETTINGS_FILE = "config_sentence_transformers.json"
SENTENCE_FILE = "sentence_bert_config.json"
_TOKENIZER_ARGUMENTS = (
    *("model_max_length", "truncation_side", "padding_side", "do_lower_case", "strip_accents"),
    *("tokenize_chinese_chars", "add_prefix_space", "clean_up_tokenization_spaces", "use_fast", "legacy"),
    *("add_bos_token", "add_eos_token", "trim_offsets", "split_special_tokens"),
)
"""Arguments by which transformers builds a tokenizer. Others name files and code."""

_CALL_ARGUMENTS = (
    *("max_length", "truncation", "add_special_tokens", "padding", "pad_to_multiple_of", "return_tensors"),
    *("return_token_type_ids", "return_attention_mask"),
)
_OTHER_MODALITIES = ("audio", "image", "video", "chat_template")

_SHORTEST = 3
_NO_LIMIT = 1_000_000
"""More tokens than any model reads. Tokenizers without a limit report 10^30."""


def prompt_of(folder: Path, side: str) -> str:
    """The prompt that sentence-transformers puts before the texts of a side, ``query`` or ``document``.

    Prompts of other names, such as ``passage``, and the default prompt are not used: sentence-transformers gives each
    side its own prompt, an empty one if the model has none.
    """
    config = optional_json(folder / SETTINGS_FILE)
    named = config.get("prompts") or {}
    if not isinstance(named, dict):
        raise EncodingError(f"{SETTINGS_FILE}: `prompts` must be an object, got {shown(named)}")
    prompts = {"query": "", "document": "", **named}
    default = config.get("default_prompt_name")
    if default is not None and default not in prompts:
        what = f"{SETTINGS_FILE}: `default_prompt_name` is {shown(default)}, which is not among its prompts"
        raise EncodingError(what, remedy=f"name one of {', '.join(prompts)}, or leave it out")
    return str(prompts[side] or "")


def most_terms(folder: Path) -> int | None:
    """The number of terms that sentence-transformers keeps of a text of either side; None for all."""
    file = folder / SETTINGS_FILE
    count = optional_json(file).get("max_active_dims")
    if count is not None and (type(count) is not int or count < 1):
        raise EncodingError(f"{file.name}: `max_active_dims` must be a whole number from 1, got {shown(count)}")
    return count


class TextSettings(NamedTuple):
    """How sentence-transformers reads the texts of one side of a model; the fields are those of ``NeuralSide``."""

    max_length: int
    longest: int
    lowercase: bool
    arguments: str
    special_tokens: bool


def text_settings(folder: Path, side: str) -> TextSettings:
    """The settings of ``sentence_bert_config.json`` for a side, ``query`` or ``document``."""
    config = optional_json(folder / SENTENCE_FILE)
    arguments = _known(config, ("processor_kwargs", "tokenizer_args"), _TOKENIZER_ARGUMENTS)
    calls = _known(config, ("processing_kwargs",), ("text", "common", *_OTHER_MODALITIES))
    call = {key: value for part in ("common", "text") for key, value in _known(calls, (part,), _CALL_ARGUMENTS).items()}
    if config.get("query_expansion") and side == "query":
        raise EncodingError(f"{SENTENCE_FILE}: `query_expansion` is for models of several vectors for each text")
    told = [call.get("max_length"), config.get(f"{side}_length"), arguments.get("model_max_length")]
    for length in told:
        if length is not None and (type(length) is not int or length < _SHORTEST):
            what = f"{SENTENCE_FILE}: a length must be a whole number from {_SHORTEST}, got {shown(length)}"
            raise EncodingError(what)
    if call.get("truncation", True) in (False, "do_not_truncate"):
        told = [_NO_LIMIT]  # but for the positions of the network
    max_length, longest = read_lengths(folder, next((length for length in told if length is not None), None))
    return TextSettings(
        max_length,
        longest,
        config.get("do_lower_case") is True,
        json.dumps(arguments, sort_keys=True) if arguments else "",
        call.get("add_special_tokens", True) is not False,
    )


def _known(config: Mapping[str, Any], names: Sequence[str], known: Collection[str]) -> dict[str, Any]:
    """The settings under the first of some names that a configuration has. Unknown settings are refused."""
    name = next((name for name in names if config.get(name)), names[0])
    values = config.get(name) or {}
    if not isinstance(values, dict):
        raise EncodingError(f"{SENTENCE_FILE}: `{name}` must be an object, got {shown(values)}")
    if unknown := [key for key in values if key not in known]:
        remedy = f"known are {', '.join(known)}"
        raise EncodingError(f"{SENTENCE_FILE}: `{name}` has {shown(unknown[0])}, which is unknown here", remedy=remedy)
    return values


def read_lengths(folder: Path, told: int | None = None) -> tuple[int, int]:
    """The number of tokens that are read of a text by default, and the number that can be read.

    The first is ``max_seq_length``, where former releases of sentence-transformers kept it, or else
    ``model_max_length`` of the tokenizer, where release 6 keeps it, but no more than the positions of the network.
    ``told`` takes the place of both. A model without any of these numbers reads 512.
    """
    config = optional_json(folder / "config.json")
    for key in _SIZES:
        size = _number(folder / "config.json", key)
        most = _MOST_LAYERS if key.endswith("layers") else _NO_LIMIT
        if size is not None and (not isinstance(size, int) or not 1 <= size <= most):
            raise EncodingError(f"config.json: `{key}` must be a whole number from 1 to {most:,}, got {shown(size)}")
    positions = _length(folder / "config.json", "max_position_embeddings")
    if positions is not None and config.get("model_type") in _PADDED_POSITIONS:
        positions -= int(_number(folder / "config.json", "pad_token_id") or 0) + 1
    allowed = _length(folder / "tokenizer_config.json", "model_max_length")
    told = told or _length(folder / SENTENCE_FILE, "max_seq_length")
    tokens = max(allowed, told or 0) if allowed else None  # sentence-transformers replaces the tokenizer's limit
    longest = min((length for length in (positions, tokens) if length is not None), default=told or _LONGEST_INPUT)
    return min(told or longest, longest), longest


def _length(file: Path, key: str) -> int | None:
    """A number of tokens; None for no limit. A shorter text than of 3 tokens has only special tokens."""
    value = _number(file, key)
    if value is not None and value < _SHORTEST and key != "max_position_embeddings":
        raise EncodingError(f"{file.name}: `{key}` must be a whole number from {_SHORTEST}, got {shown(value)}")
    return int(value) if value is not None and _SHORTEST <= value < _NO_LIMIT else None


def _number(file: Path, key: str) -> float | None:
    value = optional_json(file).get(key)
    if value is not None and not is_number(value):
        raise EncodingError(f"{file.name}: `{key}` must be a number, got {shown(value)}")
    return value


def module_routes(folder: Path) -> dict[str, list[tuple[str, str]]]:
    """The modules of sentence-transformers for documents and for queries, by kind and path."""
    with damaged(folder / MODULES_FILE):
        found = required_json(folder / MODULES_FILE, list)
        chain = [(str(module["type"]).rsplit(".", 1)[-1], str(module["path"])) for module in found]
    routes: dict[str, list[tuple[str, str]]] = {"document": [], "query": []}
    for kind, path in chain:
        if kind not in ("Router", "Asym"):
            for modules in routes.values():
                modules.append((kind, path))
            continue
        router = part_folder(folder, path)
        file = next((router / file for file in ROUTER_FILES if (router / file).is_file()), router / ROUTER_FILES[0])
        with named_part(router, folder), damaged(file):
            config = required_json(file, dict)
            for side, modules in routes.items():
                for part in config["structure"][_route(config, side)]:
                    modules.append((str(config["types"][part]).rsplit(".", 1)[-1], f"{path}/{part}" if path else part))
    return routes


def _route(config: Mapping[str, Any], side: str) -> str:
    """The name of the route that a router chooses for the texts of a side."""
    mappings = (config.get("parameters") or {}).get("route_mappings") or {}
    keys = ((side, "text"), (side, None), (None, "text"), (None, None))
    named = (mappings.get(str(key)) for key in keys)  # the file has tuples as text: "('query', 'text')"
    for route in (*named, side, "text"):
        if route is not None and route in config["structure"]:
            return str(route)
    raise EncodingError(f"its router has no route {side!r}, only {', '.join(config['structure'])}")


def part_folder(folder: Path, path: str) -> Path:
    part = (folder / path).resolve()
    if not part.is_relative_to(folder.resolve()):
        raise EncodingError(f"its part {path!r} lies outside its folder")
    return part


def refuse_foreign_code(folder: Path, name: str, read: Collection[str] = ()) -> None:
    """Refuses a checkpoint that names code to run: its own classes, or any callable of an installed library.

    Classes in ``read`` are allowed, because the caller does not run them.

    Libraries would run that code, ask on standard input whether they may, or load a class of another kind instead.
    """
    for file in sorted(_configurations(folder)):
        try:
            values = required_json(file, object, name)
        except EncodingError:  # what needs the file reports it
            continue
        if isinstance(values, dict) and "auto_map" in values and is_native(file.parent, name):
            values = {key: value for key, value in values.items() if key != "auto_map"}
        if said := next(_code(values), None) or _own_class(file.name, values, read):
            raise EncodingError(f"needs custom code ({file.name} has {said}), which is never run here", where=name)


def is_native(folder: Path, name: str = "") -> bool:
    """Whether transformers itself has the type of a network, and so ignores the classes that ``auto_map`` names.

    Libraries keep this key when they save such a model. Without transformers there is no answer, but an error.
    """
    try:
        kind = optional_json(folder / "config.json").get("model_type")
    except EncodingError:
        return False
    if not isinstance(kind, str):
        return False
    try:
        from transformers import CONFIG_MAPPING
    except ImportError:
        what = f"only transformers tells whether {shown(kind)} needs custom code, which config.json names (`auto_map`)"
        raise EncodingError(what, where=name, remedy=install_or_export()) from None
    return kind in CONFIG_MAPPING


def _configurations(folder: Path) -> Iterator[Path]:
    """The files of a checkpoint that can name code. Folders may be links."""
    seen = set()
    for path, folders, names in os.walk(folder, followlinks=True):
        seen.add(os.path.realpath(path))
        folders[:] = [one for one in folders if os.path.realpath(Path(path, one)) not in seen]
        yield from (Path(path, one) for one in names if _FILES_WITH_CLASSES.fullmatch(one))


def _code(values: Any) -> Iterator[str]:
    """The settings, at any depth, by which a library runs foreign code."""
    if isinstance(values, list):
        for value in values:
            yield from _code(value)
    elif isinstance(values, dict):
        for key, value in values.items():
            if key in _SWITCHES_OF_CODE and value not in _SWITCHES_OF_CODE[key]:
                yield f"`{key}`"
            known = _NAMES_OF_CODE.get(key)
            if known and isinstance(value, str) and re.search(r"[./]", value) and not known.fullmatch(value):
                yield f"`{key}` {value!r}"
            yield from _code(value)


def _own_class(name: str, values: Any, read: Collection[str]) -> str | None:
    """The first module that is not a class of sentence-transformers, of its list of modules or of a router."""
    if name == MODULES_FILE:
        modules = values if isinstance(values, list) else []
        kinds = [module.get("type") for module in modules if isinstance(module, dict)]
    else:
        types = values.get("types") if name in ROUTER_FILES and isinstance(values, dict) else None
        kinds = list(types.values()) if isinstance(types, dict) else []
    others = (kind for kind in kinds if kind not in read and not _OWN_MODULE.fullmatch(str(kind)))
    return next((f"the class {kind!r}" for kind in others), None)


def optional_json(file: Path, name: str = "") -> Mapping[str, Any]:
    """The object of a file, or an empty object if there is no file."""
    return required_json(file, dict, name) if file.is_file() else {}


def required_json(file: Path, kind: type, name: str = "") -> Any:
    """The value of a JSON file, which must be of a kind, ``dict`` or ``list``."""
    try:
        value = json.loads(file.read_text(encoding="utf-8"), object_pairs_hook=_without_nan)
    except FileNotFoundError:
        raise missing_file(file, f"{file.name} is missing", name) from None
    except (OSError, ValueError, RecursionError) as cause:
        remedy = "copy or download it again"
        raise EncodingError(f"{file.name} cannot be read: {cause}", where=name, remedy=remedy) from None
    if not isinstance(value, kind):
        raise EncodingError(f"{file.name}: expected {json_kind(kind())}, got {json_kind(value)}", where=name)
    return value


def _without_nan(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON. Infinities, as Python writes them, are numbers; NaN is refused."""
    for key, value in pairs:
        if any(isinstance(one, float) and isnan(one) for one in (value if isinstance(value, list) else [value])):
            raise ValueError(f"`{key}` is NaN, which is not a number")
    return dict(pairs)


@contextmanager
def damaged(file: Path) -> Iterator[None]:
    """Turns the errors that values of wrong types raise into one line that names the file."""
    try:
        yield
    except EncodingError:
        raise
    except (TypeError, AttributeError, ValueError, KeyError, OverflowError) as cause:
        said = f"no {cause}" if isinstance(cause, KeyError) else cause
        raise EncodingError(f"{file.name} is damaged: {said}", remedy="copy or download it again") from None


@contextmanager
def named_part(folder: Path, whole: Path) -> Iterator[None]:
    """Names the folder of a module in errors, if it is not the folder of the whole model."""
    try:
        yield
    except EncodingError as error:
        part = folder.relative_to(whole.resolve()).as_posix()
        raise (error if part == "." else error.at(part)) from None


def install_or_export(extra: str = "torch") -> str:
    """The remedy where the packages of an extra are missing that an exported folder does without."""
    return f"{install_hint(extra)}, or name a folder that export --output made"


def missing_file(file: Path, what: str, name: str = "") -> EncodingError:
    """The error for a missing file, which says ``what`` unless the cause is known."""
    if file.is_symlink():
        what = f"{file.name} is a link to a file that is missing"
        return EncodingError(what, where=name, remedy="copy the model with the files behind its links, as cp -rL does")
    if (file.parent / "adapter_config.json").is_file():
        remedy = "merge it into its base model (merge_and_unload of peft), and save the result"
        return EncodingError("a PEFT adapter, which is a part of a model", where=name, remedy=remedy)
    return EncodingError(what, where=name)
