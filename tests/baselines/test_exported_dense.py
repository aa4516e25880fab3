"""Dense models that are run by onnxruntime, compared with sentence-transformers."""

import json
import subprocess
import sys

import numpy as np
import pytest
from checkpoints import edit_json, needs_sentence_transformers, write_dense
from film_index import environment
from refusals import refusal

from pyserini_compneg.baselines.exported_dense import ExportedDense, dense_export
from pyserini_compneg.support.errors import EncodingError

pytestmark = pytest.mark.slow

TEXTS = ["spy films", "", "A spy comedy.", "western " * 400, "half a pair: \ud83d", "comedies"]
READABLE = [text.encode(errors="replace").decode() for text in TEXTS]


@pytest.fixture(scope="module")
def library():
    pytest.importorskip("onnxscript", reason="torch exports by it")
    return needs_sentence_transformers()


def export(folder, output="last_hidden_state"):
    """Adds ``onnx/model.onnx``, with the inputs and the output that sentence-transformers gives it."""
    import onnx
    import torch
    from transformers import AutoModel

    from pyserini_compneg.encode.networks.graph import dense_graph

    class States(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.network = AutoModel.from_pretrained(folder).eval()

        def forward(self, input_ids, token_type_ids, attention_mask):
            return self.network(
                input_ids=input_ids, token_type_ids=token_type_ids, attention_mask=attention_mask
            ).last_hidden_state

    (folder / "onnx").mkdir()
    onnx.save(dense_graph(States(), "fp32", folder, output), folder / "onnx" / "model.onnx")
    return folder


@pytest.mark.parametrize(("pooling", "output"), [("mean", "last_hidden_state"), ("cls", "token_embeddings")])
def test_the_vectors_of_the_library(library, tmp_path, pooling, output):
    from pyserini_compneg.baselines import DenseEncoder

    folder = write_dense(tmp_path / "model", pooling)
    edit_json(folder / "config_sentence_transformers.json", similarity_fn_name="dot")  # lengths count
    model = library.SentenceTransformer(str(folder), device="cpu")
    before = DenseEncoder(str(folder))
    encoder = DenseEncoder(str(export(folder, output)))
    assert isinstance(encoder._model, ExportedDense) and not isinstance(before._model, ExportedDense)
    assert encoder.model_hash != before.model_hash
    for found, expected in (
        (encoder.encode_queries(TEXTS), model.encode_query(READABLE, show_progress_bar=False)),
        (encoder.encode_documents(TEXTS), model.encode_document(READABLE, show_progress_bar=False)),
    ):
        np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(encoder.encode_queries(TEXTS[:1]), encoder.encode_queries(TEXTS)[:1], atol=1e-5)


def test_normalised_vectors(library, tmp_path):
    from sentence_transformers.sentence_transformer.modules import Normalize

    from pyserini_compneg.baselines import DenseEncoder

    model = library.SentenceTransformer(str(write_dense(tmp_path / "plain")), device="cpu")
    model.append(Normalize())
    model.save(str(tmp_path / "model"))
    edit_json(tmp_path / "model" / "config_sentence_transformers.json", similarity_fn_name="dot")
    encoder = DenseEncoder(str(export(tmp_path / "model")))
    expected = model.encode_query(READABLE, show_progress_bar=False)
    np.testing.assert_allclose(encoder.encode_queries(TEXTS), expected, atol=1e-5)


def test_no_torch_is_loaded(library, tmp_path):
    folder = export(write_dense(tmp_path / "model"))
    for file in folder.rglob("*.safetensors"):
        file.unlink()
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['torch', 'transformers', 'sentence_transformers']))\n"
        "from pyserini_compneg.baselines import pair_scorer\n"
        f"print(pair_scorer({str(folder)!r}).scores([('spy', 'A spy.'), ('spy', 'A western.')]).tolist())"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=False)
    assert len(json.loads(done.stdout)) == 2, done.stderr


def test_what_the_library_alone_can_run(library, tmp_path):
    folder = write_dense(tmp_path / "model")
    assert dense_export(folder) is None
    (folder / "onnx").mkdir()
    (folder / "onnx" / "model.onnx").touch()  # what it is does not matter before it is run
    assert dense_export(folder)
    pooling = next(folder.glob("*_Pooling")) / "config.json"
    kept = pooling.read_text()
    for settings in ({"pooling_mode": ["mean", "cls"]}, {"pooling_mode": "max"}, {"include_prompt": False}):
        edit_json(pooling, **settings)
        assert dense_export(folder) is None
        pooling.write_text(kept)
    modules = json.loads((folder / "modules.json").read_text())
    dense = {"idx": 2, "name": "2", "path": "2_Dense", "type": "sentence_transformers.models.Dense"}
    (folder / "modules.json").write_text(json.dumps([*modules, dense]))
    assert dense_export(folder) is None
    (folder / "modules.json").write_text("no JSON")
    assert dense_export(folder) is None
    (folder / "modules.json").unlink()
    assert dense_export(folder) is None


def test_an_export_of_another_kind(library, tmp_path):
    from pyserini_compneg.baselines import pair_scorer

    folder = export(write_dense(tmp_path / "model"), "logits")
    message = refusal(pair_scorer, str(folder), error=EncodingError)
    said = "onnx/model.onnx takes input_ids, token_type_ids, attention_mask and gives logits; expected are input_ids, "
    said += "token_type_ids, attention_mask and token_embeddings; export it again, or delete it"
    assert message == f"{folder}: {said}"
    (folder / "onnx" / "model.onnx").write_bytes(b"x")
    message = refusal(pair_scorer, str(folder), error=EncodingError)
    assert message.startswith(f"{folder}: onnx/model.onnx cannot be run: ") and "\n" not in message
