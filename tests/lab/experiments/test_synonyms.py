"""Synonyms, read from files in WordNet's format."""

import pytest
from refusals import refusal
from wordnet_files import write_wordnet

from pyserini_compneg.lab.experiments.synonyms import check_wordnet, synonyms_of
from pyserini_compneg.support.errors import InputError


def test_words_of_all_synsets_of_all_parts_of_speech(tmp_path):
    folder = write_wordnet(tmp_path / "wn")
    found = synonyms_of(["suit", "suited", "nowhere"], folder)
    assert found == {"suit": ["lawsuit", "case", "suit of clothes", "accommodate"], "suited": ["apt"], "nowhere": []}
    check_wordnet(folder)


def test_files_that_are_missing_or_others(tmp_path):
    folder = write_wordnet(tmp_path / "wn")
    (folder / "data.verb").unlink()
    expected = (
        f"{folder}: no file data.verb of WordNet; install Debian's package wordnet-base, or name the folder of "
        "WordNet's files with --wordnet"
    )
    assert refusal(check_wordnet, folder, error=InputError) == expected


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("index.noun", b"suit n x\n", "index.noun: is no file of WordNet: invalid literal for int() with base 10: 'x'"),
        ("data.noun", b"shorter\n", "data.noun: is no file of WordNet: "),
        ("index.noun", b"\xff\xfe", "index.noun: is no file of WordNet: 'utf-8' codec can't decode byte 0xff"),
    ],
)
def test_files_of_another_release(tmp_path, name, content, message):
    folder = write_wordnet(tmp_path / "wn")
    (folder / name).write_bytes(content)
    assert refusal(synonyms_of, ["suit"], folder, error=InputError).startswith(f"{folder}/{message}")
