"""The data of a language fit the code that reads them."""

import tomllib

from pyserini_compneg.reading.cues import _CONDITIONS
from pyserini_compneg.reading.language import ENGLISH, load_language

TEXT = ENGLISH.read_text(encoding="utf-8")
KINDS = {"question", "request", "phrase", "fragment", "statement"}


def test_groups_name_kinds_of_sentences_and_conditions_that_there_are():
    data = tomllib.loads(TEXT)
    assert all(set(group["texts"].split()) <= KINDS for group in data["exclusion"] + data["intersection"])
    assert {need for group in data["exclusion"] for need in group.get("needs", "").split()} == _CONDITIONS.keys()
    assert all(0 < group["confidence"] <= 1 for group in data["exclusion"] + data["intersection"])


def test_slips_of_cues_are_known_and_words_that_are_like_a_cue_are_themselves():
    spellings = load_language().spellings
    slips = {"exluding": "excluding", "excluidng": "excluding", "execpt": "except", "withhout": "without"}
    assert spellings.items() >= {"dont": "don't", "isnt": "isn't", "besieds": "besides", **slips}.items()
    assert spellings.keys().isdisjoint({"excerpt", "exempt", "within", "excluded", "accept", "inducing", "resides"})


def test_every_list_of_words_is_used():
    """By the code, or by a cue; `spelt` only by being a list, whose words are no slips of others."""
    sources = "".join(path.read_text(encoding="utf-8") for path in ENGLISH.parent.glob("*.py"))
    unused = [name for name in load_language().words if f'"{name}"' not in sources and f"<{name}>" not in TEXT]
    assert unused == ["spelt"]
