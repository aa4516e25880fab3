#!/bin/bash
# Which file of a BERT-like model decides whether texts are put into lower case?
#
# Packages:  transformers 5.23.0, tokenizers 0.23.3 (no torch).
# Guess:     tokenizer.json, since it is the whole tokenizer: normaliser, splitter, vocabulary and special tokens.
# Behaviour: for the class BertTokenizer transformers reads only the vocabulary and the post-processor of tokenizer.json,
#            and builds the normaliser anew from tokenizer_config.json. There `do_lower_case` decides, and a missing key
#            means true. For the class PreTrainedTokenizerFast it is tokenizer.json, and `do_lower_case` has no say.
#            The library tokenizers always follows tokenizer.json.
# Output:    class                    tokenizer.json  do_lower_case | tokenizers   transformers
#            BertTokenizer            cased           (missing)     | Spy          spy
#            BertTokenizer            cased           true          | Spy          spy
#            BertTokenizer            cased           false         | Spy          Spy
#            BertTokenizer            lower           false         | spy          Spy
#            PreTrainedTokenizerFast  cased           true          | Spy          Spy
#            PreTrainedTokenizerFast  lower           false         | spy          spy
# Matters:   terms of a learned sparse index are tokens. If documents are encoded with transformers and queries of an
#            inference-free model are split by tokenizer.json (Rust, Java, a search engine), the same word gives two
#            different terms, without an error.

set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q transformers==5.23.0 tokenizers==0.23.3
cd "$folder"
cat > try.py << 'END'
import itertools
import json
import pathlib
import sys

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from transformers import AutoTokenizer

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "spy", "Spy"]
CASES = [
    ("BertTokenizer", False, None, "Spy", "spy"),
    ("BertTokenizer", False, True, "Spy", "spy"),
    ("BertTokenizer", False, False, "Spy", "Spy"),
    ("BertTokenizer", True, False, "spy", "Spy"),
    ("PreTrainedTokenizerFast", False, True, "Spy", "Spy"),
    ("PreTrainedTokenizerFast", True, False, "spy", "spy"),
]
changed = False
print("class                    tokenizer.json  do_lower_case | tokenizers   transformers")
for number, (kind, lower, setting, direct, expected) in enumerate(CASES):
    model = pathlib.Path(f"model{number}")
    model.mkdir()
    tokenizer = Tokenizer(models.WordPiece({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lower)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.save(str(model / "tokenizer.json"))
    config = {"tokenizer_class": kind, "unk_token": "[UNK]"} | ({} if setting is None else {"do_lower_case": setting})
    (model / "tokenizer_config.json").write_text(json.dumps(config))
    (model / "config.json").write_text(json.dumps({"model_type": "bert"}))
    (ours,) = Tokenizer.from_file(str(model / "tokenizer.json")).encode("Spy").tokens
    (theirs,) = AutoTokenizer.from_pretrained(model).tokenize("Spy")
    shown = "(missing)" if setting is None else str(setting).lower()
    print(f"{kind:<25}{'lower' if lower else 'cased':<16}{shown:<14}| {ours:<13}{theirs}")
    changed |= (ours, theirs) != (direct, expected)
sys.exit("the behaviour has changed" if changed else 0)
END
"$folder/venv/bin/python" try.py
