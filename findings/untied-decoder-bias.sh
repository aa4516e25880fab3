#!/bin/bash
# Is the bias of a masked language model's decoder kept when transformers 5 loads what transformers 4 saved?
#
# Packages:  torch 2.13.0, transformers 5.23.0; the model is written by transformers 4.57.3.
# Guess:     yes; the file has the bias, and a tensor that a model lacks would be an error or at least a visible warning.
# Behaviour: with `tie_word_embeddings: false` it is lost. transformers 4 saved the bias once, as cls.predictions.bias,
#            and gave it to the decoder on loading. transformers 5 ties cls.predictions.decoder.bias to it only where the
#            embeddings are tied, too; otherwise the decoder's bias becomes 0. Only the load report names the key.
# Output:    transformers 4.57.3: 44 of 200 terms are positive
#            transformers 5.23.0: 181 of 200 terms are positive; missing: ['cls.predictions.decoder.bias']
#            The file has cls.predictions.bias, from -3.00 to -3.00.
# Matters:   a SPLADE model weighs terms by log(1 + ReLU(logit)), and its sparsity lies in a bias far below 0. Without the
#            bias a text gets many times the terms, and the index grows alike, though every weight file is whole.

set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 transformers==5.23.0
"$folder/venv/bin/pip" install -q --no-deps --target "$folder/old" transformers==4.57.3 huggingface_hub==0.36.0 \
  tokenizers==0.22.1 requests==2.32.5 urllib3==2.5.0 certifi==2025.8.3 charset-normalizer==3.4.3
cd "$folder"
cat > try.py << 'END'
import logging
import sys
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file
from transformers import BertConfig, BertForMaskedLM

logging.disable()
ids = torch.arange(1, 9)[None]
if not Path("model").is_dir():  # written by transformers 4
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = BertConfig(vocab_size=200, initializer_range=0.3, tie_word_embeddings=False, **sizes)
    model = BertForMaskedLM(config)
    model.cls.predictions.bias.data.fill_(-3)
    model.save_pretrained("model")
model, report = BertForMaskedLM.from_pretrained("model", output_loading_info=True)
with torch.inference_mode():
    terms = int((model.eval()(ids).logits.amax(1) > 0).sum())
missing = sorted(report["missing_keys"])
print(f"transformers {transformers.__version__}: {terms} of 200 terms are positive" + f"; missing: {missing}" * bool(missing))
if transformers.__version__.startswith("4"):
    Path("terms").write_text(str(terms))
else:
    bias = load_file("model/model.safetensors")["cls.predictions.bias"]
    print(f"The file has cls.predictions.bias, from {bias.min():.2f} to {bias.max():.2f}.")
    lost = missing == ["cls.predictions.decoder.bias"] and terms > 4 * int(Path("terms").read_text())
    sys.exit(0 if lost else "the behaviour has changed")
END
PYTHONPATH=$folder/old "$folder/venv/bin/python" try.py
"$folder/venv/bin/python" try.py
