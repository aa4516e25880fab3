"""Dense models as ONNX files: their vectors are those of sentence-transformers on torch."""

import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from checkpoints import edit_json, needs_sentence_transformers, sample_texts, write_dense, write_dense_onnx, write_json

from pyserini_compneg.encode.dense import DenseEncoder, check_dense_model, dense_model_hash, similarities
from pyserini_compneg.errors import EncodingError
from pyserini_compneg.models import dense_onnx
from pyserini_compneg.models.dense_onnx import POOLINGS, DenseOnnxModel, read_dense_checkpoint

TOLERANCE = 1e-5
"""How much a number of a vector of length 1 may differ from torch's."""

TEXTS = ["spy films", "films starring Brian Cox", "", "COMEDIES set in Japan", "x" * 3000, "half a pair: \ud83d"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A model for torch, with an ONNX file of its network."""
    for package in ("torch", "onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(package, reason="a model is exported to ONNX")
    needs_sentence_transformers()
    folder = write_dense(tmp_path_factory.mktemp("dense") / "model")
    write_dense_onnx(folder)
    return folder


@pytest.fixture
def model(made, tmp_path):
    """A copy that may be changed."""
    return shutil.copytree(made, tmp_path / "model")


@pytest.fixture
def file(model):
    return model / "onnx" / "model.onnx"


@pytest.fixture
def without_torch(model):
    """The ONNX file of a model that has no other weights."""
    (model / "model.safetensors").unlink()
    return model / "onnx" / "model.onnx"


def refused(file):
    with pytest.raises(EncodingError) as error:
        DenseEncoder(str(file))
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_vectors_are_those_of_torch(model, file, pooling):
    edit_json(model / "1_Pooling" / "config.json", pooling_mode=pooling)
    torch, onnx = DenseEncoder(str(model)), DenseEncoder(str(file))
    texts = [*TEXTS, *sample_texts(30)]
    for kind in ("encode_queries", "encode_documents"):
        np.testing.assert_allclose(getattr(onnx, kind)(texts), getattr(torch, kind)(texts), atol=TOLERANCE)
    assert np.abs(onnx.encode_queries(texts) - onnx.encode_documents(texts)).max() > 0.01


@pytest.mark.parametrize(
    ("prompts", "default"),
    [({"query": "war film: ", "passage": "a "}, None), ({"film": "war film: "}, "film"), ({}, None)],
)
def test_prompts_are_those_of_torch(model, file, prompts, default):
    edit_json(model / "config_sentence_transformers.json", prompts=prompts, default_prompt_name=default)
    torch, onnx = DenseEncoder(str(model)), DenseEncoder(str(file))
    for kind in ("encode_queries", "encode_documents"):
        np.testing.assert_allclose(getattr(onnx, kind)(TEXTS), getattr(torch, kind)(TEXTS), atol=TOLERANCE)


def test_settings_of_older_models_are_read(model, file):
    flags = {f"pooling_mode_{kind}": kind == "max_tokens" for kind in ("cls_token", "mean_tokens", "max_tokens")}
    write_json(model / "1_Pooling" / "config.json", {"word_embedding_dimension": 32, **flags})
    write_json(model / "sentence_bert_config.json", {"max_seq_length": 5, "do_lower_case": True})
    torch, onnx = DenseEncoder(str(model)), DenseEncoder(str(file))
    np.testing.assert_allclose(onnx.encode_queries(TEXTS), torch.encode_queries(TEXTS), atol=TOLERANCE)
    long = onnx.encode_queries(["spy films set in Japan", "spy films set in Japan with comedies"])
    assert (long[0] == long[1]).all()


def test_a_vector_does_not_depend_on_what_else_is_encoded(file):
    encoder = DenseEncoder(str(file))
    texts = [*sample_texts(40), *TEXTS]
    together = encoder.encode_documents(texts)
    np.testing.assert_allclose(encoder.encode_documents(texts[::-1])[::-1], together, atol=TOLERANCE)
    np.testing.assert_allclose(np.concatenate([encoder.encode_documents([t]) for t in texts]), together, atol=TOLERANCE)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1.0, atol=1e-6)
    assert encoder.encode_documents([]).shape == (0, encoder.dimensions) == (0, 32)


def test_a_network_that_overlooks_the_mask_is_never_given_padding(file, monkeypatch):
    right = DenseEncoder(str(file)).encode_documents(TEXTS)
    original = dense_onnx.run_session

    def unmasked(session, outputs, inputs):
        return original(session, outputs, {**inputs, "attention_mask": np.ones_like(inputs["attention_mask"])})

    monkeypatch.setattr(dense_onnx, "run_session", unmasked)
    np.testing.assert_allclose(DenseEncoder(str(file)).encode_documents(TEXTS), right, atol=TOLERANCE)


def test_in_8_bits_texts_do_not_share_a_scale(file):
    from onnxruntime.quantization import QuantType, quantize_dynamic

    small = file.with_name("model_qint8.onnx")
    quantize_dynamic(file, small, weight_type=QuantType.QInt8, op_types_to_quantize=["MatMul"])
    encoder, texts = DenseEncoder(str(small)), sample_texts(10)
    together = encoder.encode_documents(texts)
    assert (np.concatenate([encoder.encode_documents([text]) for text in texts]) == together).all()
    cosines = (together * DenseEncoder(str(file)).encode_documents(texts)).sum(axis=1)
    assert 0.9 < cosines.min() < 1 - 1e-6


def test_caches_tell_the_two_apart(model, file):
    assert dense_model_hash(str(model)) != dense_model_hash(str(file))
    moved = shutil.copytree(model, model.with_name("moved")) / "onnx" / "model.onnx"
    known = dense_model_hash(str(file))
    assert dense_model_hash(str(moved)) == known == DenseEncoder(str(file)).model_hash
    changes = [lambda: edit_json(model / "1_Pooling" / "config.json", pooling_mode="cls")]
    changes += [lambda: file.with_name("model.onnx_data").write_bytes(b"weights")]
    changes += [lambda: edit_json(model / "config_sentence_transformers.json", prompts={})]
    changes += [lambda: file.write_bytes(file.read_bytes() + b"\0")]
    for change in changes:
        change()
        assert dense_model_hash(str(file)) != known
        known = dense_model_hash(str(file))
    file.with_name("model_O2.onnx").write_bytes(b"another")
    odd = shutil.copy(file, file.with_name("model[1].onnx"))
    of_one_file = dense_model_hash(str(odd))
    file.with_name("model[1].onnx_data").write_bytes(b"weights")
    assert dense_model_hash(str(odd)) != of_one_file
    linked = model.with_name("linked")
    linked.symlink_to(model)
    assert dense_model_hash(str(linked / "onnx" / "model.onnx")) == dense_model_hash(str(file)) == known


def test_no_torch_is_needed(without_torch, tmp_path):
    script = (
        "import sys\nfrom pyserini_compneg.encode.dense import DenseEncoder, check_dense_model\n"
        "check_dense_model(sys.argv[1])\nprint(*DenseEncoder(sys.argv[1]).encode_queries(['spy films'])[0])\n"
        "assert not {'torch', 'transformers', 'sentence_transformers'} & sys.modules.keys()"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", script, str(without_torch)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    expected = DenseEncoder(str(without_torch)).encode_queries(["spy films"])[0]
    np.testing.assert_allclose([float(number) for number in done.stdout.split()], expected, atol=TOLERANCE)


def test_an_export_that_lies_by_itself_is_averaged(model, file, tmp_path):
    alone = tmp_path / "alone"
    alone.mkdir()
    for path in (file, model / "tokenizer.json", model / "tokenizer_config.json"):
        shutil.copy(path, alone)
    edit_json(model / "config_sentence_transformers.json", prompts={})
    expected = DenseEncoder(str(file)).encode_queries(TEXTS)
    np.testing.assert_allclose(DenseEncoder(str(alone / "model.onnx")).encode_queries(TEXTS), expected, atol=TOLERANCE)


def test_similarities_are_cosines(file):
    vectors = DenseEncoder(str(file)).encode_queries(["spy films", "comedies"])
    assert similarities(str(file), [("spy films", "comedies")]) == pytest.approx([vectors[0] @ vectors[1]], abs=1e-6)


def test_a_folder_without_weights_for_torch_names_its_export(without_torch):
    folder = without_torch.parent.parent
    assert refused(folder) == f"{folder}: no weights for torch; name the ONNX file, such as {without_torch}"


def test_what_is_no_file(tmp_path):
    pytest.importorskip("onnxruntime", reason="what runs a model is missed first")
    pytest.importorskip("tokenizers")
    for name in (f"{tmp_path}/model.onnx", str(tmp_path / "a" / "b" / "c.onnx"), "model.onnx"):
        assert refused(name) == (
            f"{name}: no such file; expected an ONNX file, or one of a model on the Hugging Face hub, such as "
            "owner/name/onnx/model.onnx"
        )


@pytest.mark.parametrize("content", [b"", b"no protobuf", None])
def test_a_broken_file(file, content):
    file.write_bytes(file.read_bytes()[:-1000] if content is None else content)
    assert re.match(re.escape(f"{file}: cannot be run: "), refused(file))


def test_a_file_of_another_kind_of_model(file):
    import onnx

    graph = onnx.load(file)
    graph.graph.output[0].name = "logits"
    for node in graph.graph.node:
        node.output[:] = ["logits" if name == "last_hidden_state" else name for name in node.output]
        node.input[:] = ["logits" if name == "last_hidden_state" else name for name in node.input]
    onnx.save(graph, file)
    assert refused(file) == (
        f"{file}: from input_ids, attention_mask, token_type_ids it makes logits; expected last_hidden_state or "
        "token_embeddings from input_ids, attention_mask, token_type_ids"
    )


def test_a_pooling_of_another_model(model, file):
    edit_json(model / "1_Pooling" / "config.json", embedding_dimension=384)
    assert refused(file) == (
        f"{file}: makes vectors of 32 numbers, and the pooling beside it is of 384; they are not of one model"
    )


def test_a_tokenizer_of_another_model(model, file):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    tokenizer.add_tokens([f"film{number}" for number in range(50)])
    tokenizer.save(str(model / "tokenizer.json"))
    last = tokenizer.get_vocab_size() - 1
    said = f"{file}: fails on token {last} of the tokenizer beside it; are they of one model? the model failed on "
    assert refused(file).startswith(said)


def test_what_is_not_done_with_onnx(model, file):
    pooling, modules = model / "1_Pooling" / "config.json", model / "modules.json"
    said = "is not done here; name its folder, which sentence-transformers runs"
    edit_json(pooling, include_prompt=False)
    assert refused(file) == f"{file}: a pooling without the prompt's tokens {said}"
    edit_json(pooling, pooling_mode=["mean", "max"], include_prompt=True)
    assert refused(file) == f"{file}: pooling 'mean and max' {said}"
    write_json(modules, [{"type": f"sentence_transformers.models.{kind}", "path": ""} for kind in ("BoW", "Dense")])
    assert refused(file) == (
        f"{file}: a model of BoW, Dense does more than its ONNX file and a pooling; name its folder, which "
        "sentence-transformers runs"
    )


@pytest.mark.parametrize("content", [[1], [{"type": "Transformer"}], [{"type": "Transformer", "path": 1}]])
def test_a_damaged_list_of_modules(model, file, content):
    write_json(model / "modules.json", content)
    assert str(file) in refused(file)


def test_a_file_without_a_tokenizer(file, tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    alone = shutil.copy(file, tmp_path / "a" / "b" / "model.onnx")
    assert refused(alone) == (
        f"{alone}: neither in its folder nor in the one above is there a modules.json or tokenizer.json"
    )


def test_without_its_packages_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    for ask in (check_dense_model, DenseEncoder):
        with pytest.raises(EncodingError) as error:
            ask("model.onnx")
        assert str(error.value) == (
            "dense models as ONNX files need onnxruntime and tokenizers; pip install 'pyserini_compneg[onnx]'"
        )


def test_no_texts_have_no_vectors(file):
    assert len(DenseOnnxModel(read_dense_checkpoint(file, "m")).encode_query([])) == 0
