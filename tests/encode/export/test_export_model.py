import json
import logging
import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from refusals import refusal

pytest.importorskip("torch", reason="models are exported by torch")
pytest.importorskip("transformers", reason="checkpoints are loaded by transformers")
pytest.importorskip("onnxscript", reason="torch exports with onnxscript")
runtime = pytest.importorskip("onnxruntime", reason="exports are run by onnxruntime")

import numpy as np  # noqa: E402
from checkpoints import edit_json, sample_texts, write_opensearch  # noqa: E402
from film_index import start  # noqa: E402
from varied_texts import varied_texts  # noqa: E402

from pyserini_compneg.commands.export import main  # noqa: E402
from pyserini_compneg.encode import export, networks  # noqa: E402
from pyserini_compneg.encode.export import export_model, exported_folder, read_report  # noqa: E402
from pyserini_compneg.encode.models import Head, ModelOptions, load_checkpoint, model_hash, read_checkpoint  # noqa: E402
from pyserini_compneg.encode.models.batching import encode_tokens  # noqa: E402
from pyserini_compneg.encode.models.cache import transformers_major  # noqa: E402
from pyserini_compneg.encode.models.checkpoint import MODEL_FILE  # noqa: E402
from pyserini_compneg.encode.models.onnx_model import OnnxModel  # noqa: E402
from pyserini_compneg.encode.models.tokenizer import TextTokenizer  # noqa: E402
from pyserini_compneg.encode.networks.torch_model import TorchModel  # noqa: E402
from pyserini_compneg.encode.neural import ModelDocumentEncoder, ModelQueryEncoder  # noqa: E402
from pyserini_compneg.support.errors import EncodingError, OutputError, install_hint  # noqa: E402

SIGNED = ("snrelu", "absmax", 0.5)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache of the test's own, in which nothing was exported yet."""
    monkeypatch.setenv("COMPNEG_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "models"


@pytest.fixture
def quick(exported, monkeypatch):
    """In place of torch's exporter: copies of what it has made for ``bert``. Returns the calls.

    By keyword, one precision can be made in the place of another.
    """
    made = {precision: exported("bert", precision) / MODEL_FILE for precision in ("fp32", "int8")}
    calls = []

    def use(**others):
        def write_graph(module, precision, path):
            calls.append(precision)
            shutil.copy(made[others.get(precision, precision)], path)

        monkeypatch.setattr(networks, "write_graph", write_graph)
        return calls

    return use


def encode(model, folder, texts, batch_size=32):
    tokenizer = TextTokenizer(folder, 64)
    return encode_tokens(model, tokenizer(texts).ids, tokenizer.terms, batch_size)


def side(folder, head=None):
    return read_checkpoint(folder, head=Head(*head) if head else None).document


def names(folder):
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(".lock")) if folder.is_dir() else []


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "count"), [("bert", 100), ("distilbert", 60), ("signed", 60)])
def test_fp32_gives_torchs_vectors(checkpoints, exported, kind, count):
    texts = [*varied_texts(count - 2), "the spy " * 131_072, " "]
    folder = exported(kind)
    found = encode(OnnxModel(folder), folder, texts)
    expected = encode(TorchModel(side(getattr(checkpoints, kind))), folder, texts)
    assert len(found) == count
    for ours, theirs in zip(found, expected, strict=True):
        for term in {**ours, **theirs}:
            assert abs(ours.get(term, 0.0) - theirs.get(term, 0.0)) <= 1e-4 * max(1.0, abs(theirs.get(term, 0.0)))
    assert any(weight < 0 for vector in found for weight in vector.values()) == (kind == "signed")
    report = read_report(folder)
    assert report["width"] == len(TextTokenizer(folder, 64).terms)
    assert report["largest_difference"] <= 1e-4
    assert report["bytes"] == (folder / MODEL_FILE).stat().st_size
    assert names(folder) == ["export.json", "model.onnx", "tokenizer.json"]
    assert b"site-packages" not in (folder / "model.onnx").read_bytes()  # the folders of this machine


def test_the_graph_is_one_that_anserini_runs(exported):
    """Its encoders hand over one text and read the columns and their weights; the third output is for batches."""
    folder = exported("bert")
    session = runtime.InferenceSession(str(folder / MODEL_FILE), providers=["CPUExecutionProvider"])
    ids = np.array(TextTokenizer(folder, 64)(["spy films"]).ids)
    inputs = {"input_ids": ids, "token_type_ids": ids * 0, "attention_mask": ids * 0 + 1}
    columns, weights = session.run(["output_idx", "output_weights"], inputs)
    terms = TextTokenizer(folder, 64).terms
    (expected,) = encode(OnnxModel(folder), folder, ["spy films"])
    found = {terms[column]: float(weight) for column, weight in zip(columns, weights, strict=True)}
    assert found == pytest.approx(expected, abs=1e-5)
    assert [entry.name for entry in session.get_outputs()] == ["output_idx", "output_weights", "output_row"]


@pytest.mark.parametrize(
    ("precision", "start", "end"),
    [
        ("int8", "int8 changes the vectors too much (mean cosine ", ", at least 1); choose --precision fp32"),
        ("fp32", "the export's weights differ from torch's by ", ", more than 0.0001; choose --backend torch"),
    ],
)
def test_an_export_that_differs_too_much_is_refused(checkpoints, cache, quick, monkeypatch, precision, start, end):
    monkeypatch.setitem(export.LEAST_COSINE, "int8", 0.9999999)
    quick(fp32="int8")
    message = refusal(export_model, side(checkpoints.bert), precision, error=EncodingError)
    assert message.startswith(f"{checkpoints.bert}: {start}") and message.endswith(end)
    assert names(cache) == []


@pytest.mark.parametrize(("values", "precision"), [((float("nan"), 1.0), "fp32"), ((0.0, float("nan")), "int8")])
def test_vectors_of_no_number_are_refused(values, precision):
    with pytest.raises(EncodingError):
        export.check_likeness(precision, *values, Head())


def test_an_export_is_made_once(checkpoints, cache, quick, caplog):
    caplog.set_level(logging.INFO)
    calls = quick()
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(export_model, [side(checkpoints.bert)] * 3))
    folder = export_model(side(checkpoints.bert))
    assert calls == ["fp32"]
    assert folder == exported_folder(side(checkpoints.bert))
    assert folder == cache / f"{model_hash(side(checkpoints.bert))}-fp32-transformers{transformers_major()}"
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.INFO] == [
        f"exporting {checkpoints.bert} to ONNX (fp32), once; it is kept in {cache}"
    ]
    assert export_model(side(checkpoints.bert), fresh=True) == folder
    assert calls == ["fp32", "fp32"]
    assert names(cache) == [folder.name]


def test_a_model_is_known_by_its_content(checkpoints, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(checkpoints.bert, copy)
    assert model_hash(side(copy)) == model_hash(side(checkpoints.bert))
    assert model_hash(side(copy)) == model_hash(side(checkpoints.sparse_encoder))
    others = {model_hash(side(copy, head)) for head in (("relu", "sum"), SIGNED, ("snrelu", "sum"))}
    others |= {model_hash(side(getattr(checkpoints, kind))) for kind in ("bert", "distilbert", "legacy", "router")}
    (copy / "tokenizer.json").write_text((copy / "tokenizer.json").read_text() + " ")
    assert len(others | {model_hash(side(copy))}) == 8


def test_each_major_release_of_transformers_has_its_own_export(checkpoints, cache, quick, monkeypatch, caplog):
    """Without transformers, or the packages that would make another one, the newest is used."""
    caplog.set_level(logging.WARNING)
    calls, made = quick(), []
    for major, count in (("5", 1), ("6", 2), ("5", 2)):
        monkeypatch.setattr(export, "transformers_major", lambda major=major: major)
        made.append(export_model(side(checkpoints.bert)))
        assert len(calls) == count
    assert made[0] == made[2] != made[1]
    os.utime(made[0] / "tokenizer.json", (0, 0))
    monkeypatch.setattr(export, "transformers_major", lambda: None)
    assert export_model(side(checkpoints.bert)) == made[1]
    assert caplog.messages == []
    monkeypatch.setattr(export, "transformers_major", lambda: "7")
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    assert export_model(side(checkpoints.bert)) == made[1]
    said = "made by another release of transformers, and used as it is: onnxscript is missing to make it again"
    assert caplog.messages == [f"{made[1]}: {said}"]
    made[1].rename(cache / made[1].name.removesuffix("-transformers6"))  # as version 1 named it
    shutil.rmtree(made[0])
    assert export_model(side(checkpoints.bert)).name == f"{model_hash(side(checkpoints.bert))}-fp32"
    assert refusal(export_model, side(checkpoints.bert), fresh=True, error=EncodingError)
    assert calls == ["fp32", "fp32"]


def test_queries_are_kept_by_the_tokenizer_of_the_export(checkpoints, cache, quick):
    calls, checkpoint = quick(), read_checkpoint(checkpoints.bert)
    expected = ModelQueryEncoder(checkpoint).encode_batch(["a"])
    (first,) = (cache.parent / "queries").iterdir()
    file = export_model(checkpoint.query) / "tokenizer.json"
    edit_json(file.with_name("export.json"), tokenizer_hash=None)
    file.write_text(file.read_text() + " ")
    assert ModelQueryEncoder(checkpoint).encode_batch(["a"]) == expected
    assert len({first, *(cache.parent / "queries").iterdir()}) == 2
    assert calls == ["fp32"]


def test_damaged_files_of_an_export_in_the_cache(checkpoints, cache, quick):
    quick()
    folder = export_model(side(checkpoints.bert))
    for file in ("model.onnx", "tokenizer.json"):
        content = (folder / file).read_bytes()
        (folder / file).write_bytes(content.replace(b"a", b"e", 1))
        message = refusal(ModelQueryEncoder(read_checkpoint(checkpoints.bert)).encode_batch, ["a"], error=EncodingError)
        assert message == f"{folder}: the export is damaged; delete the folder, and it is made again"
        (folder / file).write_bytes(content)


@pytest.mark.parametrize("file", ["model.onnx", "export.json", "tokenizer.json"])
def test_what_lacks_a_file_is_made_again(checkpoints, cache, quick, file):
    calls = quick()
    folder = export_model(side(checkpoints.bert))
    (folder / file).unlink()
    assert export_model(side(checkpoints.bert)) == folder
    assert calls == ["fp32", "fp32"]
    assert names(folder) == ["export.json", "model.onnx", "tokenizer.json"]


def test_a_cache_that_cannot_be_written(checkpoints, cache, quick, tmp_path, monkeypatch):
    quick()

    def full(*_):
        raise OSError(28, "No space left on device")

    def refused(home, reason):
        message = refusal(export_model, side(checkpoints.bert), error=OutputError)
        assert message == f"{home}: cannot be written: {reason}; name another place in COMPNEG_CACHE"

    monkeypatch.setattr(TextTokenizer, "save", full)
    refused(cache, "no space left on device")
    assert names(cache) == []
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("COMPNEG_CACHE", str(tmp_path / "file"))
    refused(tmp_path / "file" / "models", "not a directory")


def test_what_cannot_be_exported(checkpoints, cache, monkeypatch):
    def fails(*_, **__):
        raise RuntimeError("\nno such operator\nand much more")

    def refused():
        message = refusal(export_model, side(checkpoints.bert), error=EncodingError)
        assert names(cache) == []
        return message

    for package in ("onnx", "onnxscript"):
        with monkeypatch.context() as without:
            without.setitem(sys.modules, package, None)
            said = f"a checkpoint that is not exported needs {package}; {install_hint('export')}"
            assert refused() == f"{said}, or name a folder that export --output made"
    monkeypatch.setattr(networks.graph.torch.onnx, "export", fails)
    assert refused() == "the model cannot be exported: no such operator; choose --backend torch"


def test_other_threads_keep_their_output_during_an_export(checkpoints, cache, monkeypatch, capsys, caplog):
    def prints(*_, **__):
        print("a graph", file=sys.stderr)
        logging.warning("of onnxruntime")
        logging.getLogger("torch.onnx").warning("of torch")
        with ThreadPoolExecutor(1) as pool:
            pool.submit(print, "a request", file=sys.stderr).result()
            pool.submit(logging.getLogger("serve").warning, "a slow request").result()
        raise RuntimeError

    monkeypatch.setattr(networks.graph.torch.onnx, "export", prints)
    caplog.set_level(logging.WARNING)
    capsys.readouterr()
    refusal(export_model, side(checkpoints.bert), error=EncodingError)
    error = capsys.readouterr().err
    assert "a request" in error and "a graph" not in error and "of torch" not in error
    assert {"a slow request", "of onnxruntime", "of torch"}.intersection(caplog.messages) == {"a slow request"}


def test_damaged_models(exported, tmp_path):
    file = tmp_path / MODEL_FILE
    for content in (b"", b"no model", (exported("bert") / MODEL_FILE).read_bytes()[:1000]):
        file.write_bytes(content)
        said = refusal(OnnxModel, tmp_path, error=EncodingError)
        assert said.startswith(f"{file}: cannot be run: ")
        assert said.endswith("; delete it, and it is made again")


def test_a_model_of_another_kind(tmp_path):
    from onnx import TensorProto, helper, save

    def value(name):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"])

    node = helper.make_node("Identity", ["input_ids"], ["logits"])
    graph_of_another = helper.make_graph([node], "other", [value("input_ids")], [value("logits")])
    model = helper.make_model(graph_of_another, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    save(model, tmp_path / MODEL_FILE)
    assert refusal(OnnxModel, tmp_path, error=EncodingError) == (
        f"{tmp_path / MODEL_FILE}: its inputs and outputs belong to another kind of model; export it again"
    )


def test_tokens_that_the_model_does_not_have(exported):
    ids = np.full((1, 3), 10**6)
    message = refusal(OnnxModel(exported("bert")), ids, np.ones_like(ids), error=EncodingError)
    assert message.startswith("the model failed on texts of 3 tokens: ")


@pytest.mark.parametrize("content", [None, "{", "[]", '{"width": "many"}', '{"width": 3, "hash": "0"}', "[" * 100_000])
def test_damaged_reports(tmp_path, content):
    (tmp_path / "model.onnx").write_text("")
    if content is not None:
        (tmp_path / "export.json").write_text(content)
    message = refusal(read_report, tmp_path, error=EncodingError)
    assert message == f"{tmp_path}: the export is damaged; copy the model again"


def test_without_cuda_the_processor_is_used(exported, caplog):
    if "CUDAExecutionProvider" in runtime.get_available_providers():
        pytest.skip("there is CUDA here")
    assert OnnxModel(exported("bert"), "cuda").device == "cpu"
    assert caplog.messages == ["this onnxruntime has no CUDA (onnxruntime-gpu has it); models run on the processor"]


def test_the_command(checkpoints, cache, quick, capfd):
    calls = quick()
    assert main(["--encoder", str(checkpoints.bert), "--precision", "fp32", "int8"]) == 0
    out, err = capfd.readouterr()
    folders = [str(exported_folder(side(checkpoints.bert), precision)) for precision in ("fp32", "int8")]
    assert out.splitlines() == folders
    said = [line for line in err.splitlines() if line.startswith(("fp32: ", "int8: "))]
    assert [line.split(": ")[1].split(",")[0].rsplit(" ", 1)[0] for line in said] == ["largest difference"] * 2
    assert main(["--encoder", str(checkpoints.bert)]) == 0
    assert capfd.readouterr().out.splitlines() == folders[:1]
    assert calls == ["fp32", "int8"]
    assert main(["--encoder", str(checkpoints.bert), "--overwrite"]) == 0
    assert calls == ["fp32", "int8", "fp32"]


@pytest.mark.slow
def test_a_second_use_needs_neither_torch_nor_transformers(checkpoints, exported):
    exported("bert")
    script = f"""
import json, sys
from pyserini_compneg.encode.models import load_checkpoint
from pyserini_compneg.encode.neural import ModelDocumentEncoder, ModelQueryEncoder
checkpoint = load_checkpoint({str(checkpoints.bert)!r})
assert ModelDocumentEncoder(checkpoint).encode_batch(["spy films"])[0]
assert ModelQueryEncoder(checkpoint).encode_batch(["comedies set in Japan"])[0]
print(json.dumps(sorted(sys.modules)))
"""
    with start(code=script) as process:
        out, err = process.communicate(timeout=120)
    assert err == ""
    modules = set(json.loads(out))
    assert {"onnxruntime", "tokenizers", "numpy"} <= modules
    assert modules & {"torch", "transformers", "onnx", "onnxscript", "sentence_transformers", "safetensors"} == set()


def test_a_folder_with_an_export_in_place_of_weights(checkpoints, cache, quick, tmp_path, monkeypatch, capfd):
    quick()
    source, output = write_opensearch(tmp_path / "whole", checkpoints.bert), tmp_path / "light"
    arguments = ["--encoder", "whole", "--precision", "int8", "--output", str(output)]
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 0
    (output / "of an older export").touch()
    assert main([*arguments, "--overwrite"]) == 0
    assert "of an older export" not in names(output)
    assert capfd.readouterr().out.splitlines()[-1] == str(output)
    assert not [path for pattern in ("*.safetensors", "*.bin") for path in output.glob(pattern)]
    assert str(tmp_path) not in next(output.rglob("export.json")).read_text()
    options = ModelOptions(precision="int8")
    whole, light = read_checkpoint(source), read_checkpoint(output)
    texts = sample_texts(20)
    expected = ModelDocumentEncoder(whole, options).encode_batch(texts)
    monkeypatch.setitem(sys.modules, "torch", None)
    encoder = ModelDocumentEncoder(light)
    assert encoder.encode_batch(texts) == expected
    assert encoder.settings["precision"] == "int8"
    assert ModelQueryEncoder(light).encode_batch(texts) == ModelQueryEncoder(whole).encode_batch(texts)
    refused = [({"precision": "fp32"}, "--precision fp32"), ({"backend": "torch"}, "--backend torch")]
    refused += [({"device": "cuda"}, "--device cuda"), ({"head": Head("relu", "sum")}, "--head relu:sum")]
    for chosen, said in refused:
        assert refusal(ModelDocumentEncoder, light, ModelOptions(**chosen), error=EncodingError) == (
            f"{light.document.folder}: comes exported in int8, without its weights; leave out {said}"
        )
    assert refusal(export_model, light.document, "fp16", error=EncodingError) == (
        f"{light.document.folder}: comes exported in int8, without its weights, so no other export is made; "
        "name the model from which export --output made it"
    )
    assert main(["--encoder", "whole", "--precision", "int8", "--output", "whole/light"]) == 1
    assert "lies in the model's folder" in capfd.readouterr().err
    assert main(arguments) == 1
    assert capfd.readouterr().err.splitlines()[-1].endswith(f"{output}: exists already; name another folder")
    assert main([*arguments, "--head", "relu:max"]) == 2
    (output / "README.md").write_text("of mine")
    assert load_checkpoint(str(output))[1:] == light[1:]
    kept = (output / "tokenizer_config.json").read_bytes()
    for file in ("tokenizer_config.json", "idf.json"):
        (output / file).unlink()
        said = f"{output}: the export lacks {file}; copy the whole folder again"
        assert refusal(load_checkpoint, str(output), error=EncodingError) == said
        (output / file).write_bytes(kept)
    assert refusal(load_checkpoint, str(output), error=EncodingError) == (
        f"{output}: a file of the export has changed since it was made; copy the whole folder again, or export the "
        "model again"
    )
    assert main([*arguments[:-1], str(tmp_path), "--overwrite"]) == 1
    assert "exists already, and is no folder of an export; name another folder" in capfd.readouterr().err
    assert names(tmp_path) == ["cache", "light", "whole"]
