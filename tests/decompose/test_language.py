"""The data of a language: what is refused, and what is wrong with it."""

import pytest

from pyserini_compneg.decompose import load_language
from pyserini_compneg.decompose.language import ENGLISH
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


def test_no_file(tmp_path):
    with pytest.raises(DecompositionError) as error:
        load_language(tmp_path / "none.toml")
    assert str(error.value) == f"{tmp_path / 'none.toml'}: no such file or directory"


def test_every_list_of_words_is_used():
    """By the code, or by a cue; `spelt` only by being a list, whose words are no slips of others."""
    sources = "".join(path.read_text(encoding="utf-8") for path in ENGLISH.parent.glob("*.py"))
    unused = [name for name in load_language().words if f'"{name}"' not in sources and f"<{name}>" not in TEXT]
    assert unused == ["spelt"]
