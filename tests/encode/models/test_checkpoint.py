"""What is read of a checkpoint's JSON files; no network is loaded, so its weights are empty files here."""

import json

import pytest
from refusals import refusal

from pyserini_compneg.encode.models import Checkpoint, Head, NeuralSide, StaticSide, read_checkpoint
from pyserini_compneg.support.errors import EncodingError

MLM = {"architectures": ["BertForMaskedLM"], "max_position_embeddings": 512}
POOLING = {"pooling_strategy": "max", "activation_function": "relu"}


def write(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))


def masked_lm(folder, config=None, weights="model.safetensors", **files):
    write(folder / "config.json", MLM if config is None else config)
    if weights:
        write(folder / weights, "")
    for name, value in files.items():
        write(folder / f"{name}.json", value)
    return folder


def modules(folder, *kinds):
    """A folder of sentence-transformers, its modules given as class and path."""
    write(folder / "modules.json", [{"idx": i, "name": str(i), "type": k, "path": p} for i, (k, p) in enumerate(kinds)])
    return folder


def splade(folder, first="sentence_transformers.models.Transformer", **pooling):
    modules(folder, (first, ""), ("sentence_transformers.SpladePooling", "1_SpladePooling"))
    write(folder / "1_SpladePooling" / "config.json", POOLING | pooling)
    return masked_lm(folder)


def router(folder, query, document=("Transformer", "SpladePooling"), kind="Router", config="router_config.json"):
    """A router whose parts are called q0, q1, ... and d0, d1, ..."""
    modules(folder, (f"sentence_transformers.{kind}", ""))
    routes = {"query": ("q", query), "document": ("d", document)}
    structure = {side: [f"{letter}{i}" for i in range(len(kinds))] for side, (letter, kinds) in routes.items()}
    types = {f"{letter}{i}": f"x.y.{kind}" for letter, kinds in routes.values() for i, kind in enumerate(kinds)}
    write(folder / config, {"structure": structure, "types": types, "parameters": {}})
    for part, kind in types.items():
        if kind.endswith("Transformer"):
            masked_lm(folder / part)
        elif kind.endswith("SpladePooling"):
            write(
                folder / part / "config.json", POOLING | ({"activation_function": "log1p_relu"} if "d" in part else {})
            )
        else:
            write(folder / part / "config.json", {"frozen": False})
            write(folder / part / "model.safetensors", "")
    return folder


def refused(folder, **options):
    return refusal(read_checkpoint, folder, "m", **options, error=EncodingError)


def test_a_masked_language_model(tmp_path):
    side = NeuralSide(tmp_path, Head(), 512, 512)
    assert read_checkpoint(masked_lm(tmp_path), "owner/m") == Checkpoint("owner/m", side, side)
    assert read_checkpoint(tmp_path).name == str(tmp_path)
    assert side.files == [tmp_path / "config.json", tmp_path / "model.safetensors"]
    older = masked_lm(tmp_path / "older", {"architectures": ["BertForPreTraining"]}, "pytorch_model.bin")
    assert read_checkpoint(older).document.files[-1].name == "pytorch_model.bin"


def test_what_a_model_is_made_of(tmp_path):
    names = ["config.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt", "spm.model", "tokenizer.model"]
    names += ["model-1.safetensors", "model-2.safetensors"]
    for name in ["README.md", "training_args.bin", *names]:
        write(tmp_path / name, MLM)
    assert [path.name for path in read_checkpoint(tmp_path).document.files] == names


@pytest.mark.parametrize(
    ("config", "tokenizer", "limits", "default", "longest"),
    [
        ({}, {}, {}, 512, 512),
        ({"max_position_embeddings": 256}, {}, {}, 256, 256),
        ({"max_position_embeddings": 512}, {"model_max_length": 128}, {}, 128, 128),
        ({"max_position_embeddings": 512}, {"model_max_length": 1e30}, {}, 512, 512),
        ({"max_position_embeddings": 512}, {"model_max_length": 256}, {"max_seq_length": 64}, 64, 256),
        ({"max_position_embeddings": 512}, {"model_max_length": None}, {"max_seq_length": None}, 512, 512),
        ({"max_position_embeddings": 512}, {"model_max_length": 3}, {"max_seq_length": 3}, 3, 3),
        ({"max_position_embeddings": 8192}, {}, {}, 8192, 8192),
        ({"max_position_embeddings": 8192}, {"model_max_length": 4096}, {}, 4096, 4096),
        ({"max_position_embeddings": 8192}, {}, {"max_seq_length": 2048}, 2048, 8192),
        ({}, {}, {"max_seq_length": 1024}, 1024, 1024),
        ({"max_position_embeddings": 512}, {"model_max_length": 128}, {"max_seq_length": 256}, 256, 256),
        ({"max_position_embeddings": 66, "model_type": "roberta", "pad_token_id": 1}, {}, {}, 64, 64),
    ],
)
def test_how_much_is_read(tmp_path, config, tokenizer, limits, default, longest):
    files = {"tokenizer_config": tokenizer, "sentence_bert_config": limits}
    masked_lm(tmp_path, {"architectures": MLM["architectures"]} | config, **files)
    side = read_checkpoint(tmp_path).query
    assert (side.max_length, side.longest) == (default, longest)


@pytest.mark.parametrize(
    ("positions", "tokenizer", "limits", "default", "longest"),
    [
        (2048, {"model_max_length": 1024}, {}, 1024, 1024),  # as release 6 of sentence-transformers keeps it
        (2048, {"model_max_length": 1024}, {"max_seq_length": 1024}, 1024, 1024),  # as release 5 did
        (2048, {"model_max_length": 4096}, {}, 2048, 2048),
        (2048, {"model_max_length": 1e30}, {"max_seq_length": 256}, 256, 2048),
        (2048, {}, {}, 2048, 2048),
        (512, {"model_max_length": 1024}, {}, 512, 512),
        (2048, {"model_max_length": 512}, {"tokenizer_args": {"model_max_length": 1024}}, 1024, 1024),
        (2048, {"model_max_length": 512}, {"document_length": 128, "query_length": 32}, 128, 512),
        (2048, {"model_max_length": 512}, {"processing_kwargs": {"text": {"truncation": False}}}, 2048, 2048),
    ],
)
def test_how_much_is_read_of_what_sentence_transformers_saved(tmp_path, positions, tokenizer, limits, default, longest):
    folder = splade(tmp_path)
    write(folder / "config.json", MLM | {"max_position_embeddings": positions})
    write(folder / "tokenizer_config.json", tokenizer)
    write(folder / "sentence_bert_config.json", {"transformer_task": "fill-mask"} | limits)
    side = read_checkpoint(folder).document
    assert (side.max_length, side.longest) == (default, longest)


def test_opensearchs_weights_of_query_tokens(tmp_path):
    checkpoint = read_checkpoint(masked_lm(tmp_path, idf={"bird": 2.0}))
    assert checkpoint.document == NeuralSide(tmp_path, Head(), 512, 512)
    assert checkpoint.query == StaticSide(tmp_path, tmp_path / "idf.json", 512, 512)


@pytest.mark.parametrize(
    "first", ["sentence_transformers.models.Transformer", "x.sparse_encoder.models.MLMTransformer"]
)
def test_a_sparse_encoder(tmp_path, first):
    folder = splade(tmp_path, first, activation_function="snrelu", pooling_strategy="absmax", epsilon=0.25)
    write(folder / "config_sentence_transformers.json", {"prompts": {"query": "q: ", "document": None}})
    document, query = read_checkpoint(folder)[1:]
    head = Head("snrelu", "absmax", 0.25)
    assert document == NeuralSide(folder, head, 512, 512)
    assert query == NeuralSide(folder, head, 512, 512, "q: ")


@pytest.mark.parametrize(("kind", "config"), [("Router", "router_config.json"), ("Asym", "config.json")])
@pytest.mark.parametrize("place", ["", "0_Router"])
def test_a_router(tmp_path, kind, config, place):
    folder = router(tmp_path / place, ["SparseStaticEmbedding"], kind=kind, config=config)
    modules(tmp_path, (f"sentence_transformers.{kind}", place))
    document, query = read_checkpoint(tmp_path)[1:]
    assert document == NeuralSide(folder / "d0", Head("log1p_relu"), 512, 512)
    assert query == StaticSide(folder / "q0", folder / "q0" / "model.safetensors", 512, 512)
    head = Head("snrelu", "absmax", 0.5)
    assert read_checkpoint(tmp_path, head=head)[1:] == (NeuralSide(folder / "d0", head, 512, 512), query)


def test_weights_that_the_configuration_names(tmp_path):
    folder = router(tmp_path, ["SparseStaticEmbedding"])
    write(folder / "q0" / "config.json", {"path": "idf.json"})
    write(folder / "q0" / "idf.json", {})
    assert read_checkpoint(folder).query.weights == folder / "q0" / "idf.json"
    (folder / "q0" / "idf.json").rename(folder / "idf.json")
    assert read_checkpoint(folder).query.weights == folder / "idf.json"


def test_weights_that_are_missing_or_outside_the_folder(tmp_path):
    folder = router(tmp_path / "model", ["SparseStaticEmbedding"])
    (folder / "q0" / "model.safetensors").unlink()
    write(tmp_path / "idf.json", {})
    for config in ({}, {"path": "idf.json"}, {"path": "../../idf.json"}):
        write(folder / "q0" / "config.json", config)
        assert refused(folder) == "m: q0: no weights of its tokens (model.safetensors, or what config.json names)"


def test_a_lexical_route(tmp_path):
    folder = router(tmp_path, ["MLMTransformer", "SpladePooling", "SparseStaticEmbedding"])
    query = read_checkpoint(folder).query
    own = StaticSide(folder / "q2", folder / "q2" / "model.safetensors", 512, 512)
    assert query == NeuralSide(folder / "q0", Head(), 512, 512, "", own_terms=own)


NO_TERMS = "does not give weights of terms"
NO_HEAD = "has no masked-language-model head, so it weighs no terms; name a SPLADE-like model"
LINK = "is a link to a file that is missing; copy the model with the files behind its links, as cp -rL does"
MERGE = "merge it into its base model (merge_and_unload of peft), and save the result"
SENTENCE = "sentence_bert_config.json"
SETTINGS = "config_sentence_transformers.json"
POOLING_FILE = "1_SpladePooling/config.json"
IN_POOLING = "1_SpladePooling: config.json"
POOL = ("x.SpladePooling", "")
SPLADE = (("x.Transformer", ""), ("x.SpladePooling", "1_SpladePooling"))


NOT_MODELS = {
    "no model: neither config.json nor modules.json is here": lambda folder: None,
    f"BertModel {NO_HEAD}": lambda folder: masked_lm(splade(folder), {"architectures": ["BertModel"]}),
    f"A, B {NO_HEAD}": lambda folder: masked_lm(folder, {"architectures": ["A", "B"]}),
    f"a model of unknown architecture {NO_HEAD}": lambda folder: masked_lm(folder, {"architectures": None}),
    "config.json: `architectures` must be a list, got 5": lambda folder: masked_lm(folder, {"architectures": 5}),
    "config.json: `num_hidden_layers` must be a whole number from 1 to 1,000, got -1": lambda folder: masked_lm(
        folder, MLM | {"num_hidden_layers": -1}
    ),
    "config.json: `n_heads` must be a number, got '2'": lambda folder: masked_lm(folder, MLM | {"n_heads": "2"}),
    "needs custom code (config.json has `auto_map`), which is never run here": lambda folder: masked_lm(
        folder, MLM | {"auto_map": {"AutoModel": "x.py"}}
    ),
    "no weights (model.safetensors or pytorch_model.bin)": lambda folder: masked_lm(folder, weights=None),
    "model.safetensors is only a pointer of Git LFS to the file; get the file with git lfs pull, or download the model "
    "again": lambda folder: write(
        masked_lm(folder) / "model.safetensors", "version https://git-lfs.github.com/spec/v1"
    ),
    "modules.json is missing, and 1_SpladePooling is a module of sentence-transformers; copy or download it again": (
        lambda folder: (splade(folder) / "modules.json").unlink()
    ),
    "1_SpladePooling: config.json is missing": lambda folder: (splade(folder) / POOLING_FILE).unlink(),
    "sentence_bert_config.json: `max_seq_length` must be a whole number from 3, got 2": lambda folder: write(
        splade(folder) / SENTENCE, {"max_seq_length": 2}
    ),
    "tokenizer_config.json: `model_max_length` must be a whole number from 3, got -1": lambda folder: write(
        masked_lm(folder) / "tokenizer_config.json", {"model_max_length": -1}
    ),
    "config_sentence_transformers.json: `prompts` must be an object, got ['q: ']": lambda folder: write(
        splade(folder) / SETTINGS, {"prompts": ["q: "]}
    ),
    "config_sentence_transformers.json: `default_prompt_name` is 'qery', which is not among its prompts; name one of "
    "query, document, or leave it out": lambda folder: write(
        splade(folder) / SETTINGS, {"default_prompt_name": "qery"}
    ),
    "config.json is damaged: cannot convert float infinity to integer; copy or download it again": lambda folder: (
        masked_lm(folder, MLM | {"model_type": "roberta", "pad_token_id": float("inf")})
    ),
    f"a model of Transformer, Pooling {NO_TERMS}; expected a masked language model and SpladePooling": (
        lambda folder: modules(folder, ("x.Transformer", ""), ("x.Pooling", "1_Pooling"))
    ),
    f"a model of no modules {NO_TERMS}; expected a masked language model and SpladePooling": modules,
    f"a model with D after SpladePooling {NO_TERMS}": lambda folder: modules(splade(folder), *SPLADE, ("x.D", "2")),
    f"{IN_POOLING}: relu is pooled by max or sum, got 'mean'": lambda folder: splade(folder, pooling_strategy="mean"),
    f"{IN_POOLING}: epsilon must be a number, got 'x'": lambda folder: splade(folder, epsilon="x"),
    f"{IN_POOLING}: 'pooling_strategi' is unknown; known are pooling_strategy, activation_function, "
    "embedding_dimension, word_embedding_dimension, chunk_size, epsilon, own_logits": lambda folder: splade(
        folder, pooling_strategi="sum"
    ),
    "config_sentence_transformers.json: `max_active_dims` must be a whole number from 1, got 0": lambda folder: write(
        splade(folder) / "config_sentence_transformers.json", {"max_active_dims": 0}
    ),
    "XLMWithLMHeadModel has a masked-language-model head of a kind that is not supported": lambda folder: masked_lm(
        folder, {"architectures": ["XLMWithLMHeadModel"]}
    ),
    "no weights (model.safetensors or pytorch_model.bin); onnx/model.onnx is an export of another "
    "program, which lacks the pooling; get the weights, from which this package makes its own export": lambda folder: (
        write(masked_lm(folder, weights=None) / "onnx" / "model.onnx", "")
    ),
    f"config.json {LINK}": lambda folder: (folder / "config.json").symlink_to(folder / "gone"),
    f"model.safetensors {LINK}": lambda folder: (masked_lm(folder, weights=None) / "model.safetensors").symlink_to(
        "gone"
    ),
    f"a PEFT adapter, which is a part of a model; {MERGE}": lambda folder: write(folder / "adapter_config.json", {}),
    "Normalize after SpladePooling, which divides vectors by their lengths, is not supported; delete the module "
    "from modules.json of a copy": lambda at: modules(splade(at), *SPLADE, ("x.Normalize", "2")),
    "sentence_bert_config.json: a length must be a whole number from 3, got '9'": lambda folder: write(
        splade(folder) / SENTENCE, {"query_length": "9"}
    ),
    "sentence_bert_config.json: `query_expansion` is for models of several vectors for each text": lambda folder: write(
        splade(folder) / SENTENCE, {"query_expansion": {"strategy": "fixed", "length": 32}}
    ),
    "sentence_bert_config.json: `tokenizer_args` must be an object, got ['x']": lambda folder: write(
        splade(folder) / SENTENCE, {"tokenizer_args": ["x"]}
    ),
    "its part 'a/../../b' lies outside its folder": lambda at: modules(at, ("x.Transformer", "a/../../b"), POOL),
    "its part '/etc' lies outside its folder": lambda folder: modules(folder, ("x.Transformer", "/etc"), POOL),
}


@pytest.mark.parametrize("said", NOT_MODELS)
def test_folders_that_are_no_model_of_terms(tmp_path, said):
    NOT_MODELS[said](tmp_path)
    assert refused(tmp_path) == f"m: {said}"


def test_arguments_of_a_tokenizer_that_could_name_files_are_refused(tmp_path):
    write(splade(tmp_path) / SENTENCE, {"processor_kwargs": {"vocab_file": "/etc/passwd"}})
    said = (
        "m: sentence_bert_config.json: `processor_kwargs` has 'vocab_file', which is unknown here; known are model_max"
    )
    assert refused(tmp_path).startswith(said)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "cannot be read: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        ("[]", ": expected an object, got a list"),
        ("[" * 100_000, "cannot be read: maximum recursion depth exceeded while decoding a JSON array from a unicode"),
        ("\udcff", "cannot be read: 'utf-8' codec can't decode byte 0xff"),
    ],
)
@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json", "sentence_bert_config.json"])
def test_damaged_json(tmp_path, name, content, said):
    masked_lm(tmp_path)
    (tmp_path / name).write_bytes(content.encode(errors="surrogateescape"))
    assert refused(tmp_path).startswith(f"m: {name}{'' if said.startswith(':') else ' '}{said}")


def test_a_damaged_router(tmp_path):
    folder = router(tmp_path, ["SparseStaticEmbedding"])
    config = json.loads((folder / "router_config.json").read_text())
    (folder / "router_config.json").unlink()
    assert refused(folder) == "m: router_config.json is missing"
    damaged, again = "is damaged: ", "; copy or download it again"
    for content, said in (
        (config | {"structure": {"query": ["q0"]}}, "its router has no route 'document', only query"),
        (config | {"structure": {"document": ["d0"]}}, "its router has no route 'query', only document"),
        (config | {"types": {}}, f"router_config.json {damaged}no 'd0'{again}"),
        (
            config | {"structure": None},
            f"router_config.json {damaged}argument of type 'NoneType' is not iterable{again}",
        ),
        (
            config | {"structure": {"document": 7, "query": []}},
            f"router_config.json {damaged}'int' object is not iterable{again}",
        ),
        ({"types": {}}, f"router_config.json {damaged}no 'structure'{again}"),
    ):
        write(folder / "router_config.json", content)
        assert refused(folder) == f"m: {said}"
    for content, said in (
        ([{"type": "x.Transformer"}], f"modules.json {damaged}no 'path'{again}"),
        ({}, "modules.json: expected a list, got an object"),
        ([7], f"modules.json {damaged}'int' object is not subscriptable{again}"),
    ):
        write(tmp_path / "modules.json", content)
        assert refused(tmp_path) == f"m: {said}"


@pytest.mark.parametrize(
    ("config", "document", "query"),
    [
        ({"prompts": {"query": "q: ", "passage": "p: "}}, "", "q: "),
        ({"prompts": {"document": "d: ", "corpus": "c: "}}, "d: ", ""),
        ({"prompts": {"all": "a: ", "query": ""}, "default_prompt_name": "all"}, "", ""),
        ({"prompts": {"query": "q: "}, "default_prompt_name": "query"}, "", "q: "),
        ({"prompts": None}, "", ""),
    ],
)
def test_prompts_and_lower_case_as_sentence_transformers_has_them(tmp_path, config, document, query):
    folder = splade(tmp_path)
    write(folder / "config_sentence_transformers.json", config)
    write(folder / "sentence_bert_config.json", {"do_lower_case": True})
    checkpoint = read_checkpoint(folder)
    assert (checkpoint.document.prompt, checkpoint.query.prompt) == (document, query)
    assert checkpoint.document.lowercase
