#!/bin/bash
# Does BigBird give a long text the same vector before and after it has read a short text?
#
# Packages:  torch 2.13.0, transformers 5.23.0.
# Guess:     yes; a model in eval mode has no state, so the order of texts cannot matter.
# Behaviour: no. The default, block-sparse attention, needs more than 704 tokens. For a shorter text transformers changes
#            the attention of the model to "original_full", with a warning, and never changes it back: all later texts are
#            read with full attention, and the vectors of long ones differ from those before.
# Output:    twice the long text: difference 0.0; attention block_sparse
#            after a short text: difference 0.0027; attention original_full
# Matters:   vectors depend on the order of a collection. Documents that were encoded before the first short text, and
#            queries or documents of another process, are not on one footing. State `attention_type` when loading.

set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q torch==2.13.0 transformers==5.23.0
cd "$folder"
cat > try.py << 'END'
import logging

import torch
from transformers import BigBirdConfig, BigBirdModel

logging.disable()
torch.manual_seed(0)
sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
tokens = {"vocab_size": 50, "bos_token_id": 1, "eos_token_id": 2, "sep_token_id": 3}
model = BigBirdModel(BigBirdConfig(max_position_embeddings=1100, **sizes, **tokens)).eval()
long, short = 5 + torch.arange(1024).remainder(40)[None], torch.tensor([[7, 8, 9]])


def vectors(ids):
    with torch.inference_mode():
        return model(ids).last_hidden_state


first = vectors(long)
again = float((vectors(long) - first).abs().max())
before = model.attention_type
vectors(short)
later = float((vectors(long) - first).abs().max())
print(f"twice the long text: difference {again}; attention {before}")
print(f"after a short text: difference {later:.4f}; attention {model.attention_type}")
assert (again, before, model.attention_type) == (0.0, "block_sparse", "original_full") and later > 1e-3
END
"$folder/venv/bin/python" try.py
