"""The data of a language: what is refused, and what is wrong with it."""

import tomllib

import pytest

from pyserini_compneg.decompose import conditions, language, load_language
from pyserini_compneg.decompose.language import ENGLISH, NEEDS
from pyserini_compneg.errors import DecompositionError

TEXT = ENGLISH.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("[words]", "[wards]"), "no data of a language: 'words' is missing; see english.toml"),
        (('question = "what', 'questions = "what'), "no data of a language: 'question' is missing; see english.toml"),
        (("<saying>", "<sayings>"), "no data of a language: 'sayings' is missing; see english.toml"),
        (
            ("confidence = 0.97", "confidence = 1.5"),
            "no data of a language: the group 'exception' has unknown texts or needs, or a confidence beyond 0 and 1; "
            "see english.toml",
        ),
        (
            ('needs = "other"', 'needs = "luck"'),
            "no data of a language: the group 'addition' has unknown texts or needs, or a confidence beyond 0 and 1; "
            "see english.toml",
        ),
        (
            ('texts = "phrase"', 'texts = "verse"'),
            "no data of a language: the group 'negated description' has unknown texts or needs, or a confidence beyond "
            "0 and 1; see english.toml",
        ),
        (("[words]", "[words"), "no data of a language: "),
        (('"apart from"', '""'), "no data of a language: 'cues' has a blank text; see english.toml"),
        (('"apart from"', "5"), "no data of a language: expected a text, got 5; see english.toml"),
        (
            ('"apart from"', '"> x"'),
            "no data of a language: the phrase '> x' needs a word of its own, in no parentheses; see english.toml",
        ),
        (
            ('"apart from"', '"(a) (b) (c) (d) (e) (f) (g) (h) (i) j"'),
            "no data of a language: the phrase '(a) (b) (c) (d) (e) (f) (g) (h) (i) j' has more than 8 words in "
            "parentheses; see english.toml",
        ),
        (
            ("confidence = 0.97", "confidence = true"),
            "no data of a language: 'confidence' is not of the kind it has to be; see english.toml",
        ),
        (
            ("confidence = 0.97", "confidence = 0.97\nweight = 1"),
            "no data of a language: the group 'exception' has an unknown entry 'weight'; see english.toml",
        ),
        (('name = "exception"', ""), "no data of a language: 'name' is missing; see english.toml"),
        (("[words]", "nested = " + "[" * 5000), "no data of a language: it is nested too deeply"),
    ],
)
def test_bad_data(tmp_path, change, message):
    path = tmp_path / "language.toml"
    assert change[0] in TEXT
    path.write_text(TEXT.replace(*change), encoding="utf-8")
    with pytest.raises(DecompositionError) as error:
        load_language(path)
    assert str(error.value).startswith(f"{path}: {message}")
    assert "\n" not in str(error.value)


def test_every_need_has_its_condition():
    assert conditions._CONDITIONS.keys() == {*NEEDS}
    assert {need for _, group in exclusions() for need in group.needs} == {*NEEDS}


def exclusions():
    """The cues and their groups."""
    for entry in tomllib.loads(TEXT)["exclusion"]:
        yield from ((cue, language._group(entry)) for cue in entry["cues"])


@pytest.mark.parametrize("typed", ["dont", "isnt", "exluding", "excluidng", "execpt", "besieds", "withhout"])
def test_what_is_written_otherwise(typed):
    assert load_language().spellings[typed] in {"don't", "isn't", "excluding", "except", "besides", "without"}


@pytest.mark.parametrize("word", ["excerpt", "exempt", "within", "excluded", "accept", "inducing", "resides"])
def test_words_that_are_like_a_cue_are_themselves(word):
    assert word not in load_language().spellings


def test_no_file(tmp_path):
    with pytest.raises(DecompositionError) as error:
        load_language(tmp_path / "none.toml")
    assert str(error.value) == f"{tmp_path / 'none.toml'}: no such file or directory"


def test_every_list_of_words_is_used():
    """By the code, or by a cue; `spelt` only by being a list, whose words are no slips of others."""
    sources = "".join(path.read_text(encoding="utf-8") for path in ENGLISH.parent.glob("*.py"))
    unused = [name for name in load_language().words if f'"{name}"' not in sources and f"<{name}>" not in TEXT]
    assert unused == ["spelt"]
