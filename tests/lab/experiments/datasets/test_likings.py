import hashlib
import json
import re
from collections import Counter
from statistics import fmean

import pytest
import yaml

from pyserini_compneg.expression import Atom, Difference, Union
from pyserini_compneg.lab.experiments.datasets import likings, open_dataset
from pyserini_compneg.lab.experiments.datasets.likings import LikingsSettings, write_likings
from pyserini_compneg.lucene.analysis import analyze

SETTINGS = LikingsSettings(documents=600, queries=8, seed=3)
FILES = ("documents.jsonl", "phrases.jsonl", "words.jsonl")
DIGEST = "2f4063610ad3aa1626ff84b04d1c3d3b71dbb9b2932309addad88b616f9ddcb3"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("likings") / "likings"
    assert write_likings(SETTINGS, folder) == 112
    return folder


def test_equal_settings_make_equal_files_on_every_python(made, tmp_path):
    write_likings(SETTINGS, tmp_path / "again")
    write_likings(LikingsSettings(600, 8, 4), tmp_path / "other")
    contents = {name: [(folder / name).read_bytes() for folder in (made, tmp_path / "again")] for name in FILES}
    assert all(one == other for one, other in contents.values())
    assert all((tmp_path / "other" / name).read_bytes() != one for name, (one, _) in contents.items())
    assert hashlib.sha256(b"".join(one for one, _ in contents.values())).hexdigest() == DIGEST


def likers_of(folder):
    """Who likes each thing, by the texts of the documents."""
    likers = {}
    for line in (folder / "documents.jsonl").read_text().splitlines():
        record = json.loads(line)
        name, liked = re.fullmatch(r"(.+) likes (.+)\.", record["contents"]).groups()
        assert name.replace(" ", "_") == record["id"]
        for thing in re.split(", | and ", liked):
            likers.setdefault(thing, set()).add(record["id"])
    return likers


def answers(tree, likers):
    if isinstance(tree, Atom):
        return likers[tree.text.removeprefix("people who like ")]
    if isinstance(tree, Difference):
        return answers(tree.left, likers) - answers(tree.right, likers)
    operands = [answers(operand, likers) for operand in tree.operands]
    return set.union(*operands) if isinstance(tree, Union) else set.intersection(*operands)


@pytest.mark.parametrize("split", ["words", "phrases"])
def test_the_judgements_are_the_answers(made, split):
    dataset, likers = open_dataset(made), likers_of(made)
    assert (dataset.kind, dataset.splits) == ("likings", ("words", "phrases"))
    topics, qrels = dataset.topics(split), dataset.qrels(split)
    assert Counter(topic.group for topic in topics) == dict.fromkeys(likings._TEMPLATES, 8)
    planted = []
    for topic in topics:
        assert {*qrels[topic.qid]} == answers(topic.expression, likers) and 2 <= len(qrels[topic.qid]) <= 50
        things = re.findall(r"people who like (.+?)'", repr(topic.expression))
        assert len(things) == topic.group.count("_") and all(thing in topic.text for thing in things)
        assert all((" " in thing) == (split == "phrases") for thing in things)
        if isinstance(topic.expression, Difference):
            rest = answers(topic.expression.left, likers)
            planted.append(len(rest & answers(topic.expression.right, likers)) / len(rest))
    assert 0.35 < fmean(planted) < 0.65


def test_no_word_has_the_term_of_another():
    lists = yaml.safe_load(likings.files(likings.__package__).joinpath("likings.yaml").read_text(encoding="utf-8"))
    texts = [*lists["words"].values(), lists["first_names"], lists["last_names"]]
    texts += [table[part] for table in lists["phrases"] for part in ("first", "second")]
    words = " ".join(texts).split()
    terms = Counter(term for found in analyze(words) for term in found)
    assert not [word for word, found in zip(words, analyze(words), strict=True) if [terms[t] for t in found] != [1]]
