"""What unfinished encoding is not continued; ``tests/test_kills.py`` interrupts encodings and continues them."""

import os

import pytest
from refusals import KEPT, START_ANEW, UNFINISHED, refusal
from stand_in_encoder import StandInEncoder
from vector_files import NAME, encode, leftovers, records, sources

from pyserini_compneg.support.errors import OutputError


@pytest.fixture
def unfinished(tmp_path, collection, small_blocks, monkeypatch, caplog):
    """The place of a file whose encoding ended after some blocks."""
    stream = StandInEncoder.stream

    def fails(self, batches):
        for number, vectors in enumerate(stream(self, batches)):
            if number == 7:
                raise KeyboardInterrupt
            yield vectors

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(StandInEncoder, "stream", fails)
        encode(collection, tmp_path / "out")
    place = tmp_path / "out" / NAME
    assert leftovers(place.parent) == [f".{NAME}.partial", f".{NAME}.state"]
    assert caplog.messages == [f"{place}: {KEPT}"]
    return place


@pytest.mark.parametrize(
    ("changed", "options"),
    [
        ("model", {"settings": {"precision": "int8"}}),
        ("model", {"settings": {"max_length": 64}}),
        ("encoder", {"name": "other"}),
        ("fields", {"fields": ["title"]}),
        ("sources", {}),
    ],
)
def test_other_work_is_not_continued(tmp_path, collection, unfinished, changed, options):
    if changed == "sources":
        with (collection / "part1.jsonl").open("a") as handle:
            handle.write("\n")
    for existing in ("resume", "resume or overwrite"):
        options |= {"existing": existing}
        assert refusal(encode, collection, tmp_path / "out", **options, error=OutputError) == (
            f"{unfinished}: the unfinished work cannot be continued, because {changed} changed since; {START_ANEW}"
        )
    assert leftovers(tmp_path / "out") == [f".{NAME}.partial", f".{NAME}.state"]
    assert refusal(encode, collection, tmp_path / "out", error=OutputError) == f"{unfinished}: {UNFINISHED}"


def test_data_that_are_too_short_are_not_continued(tmp_path, collection, unfinished):
    os.truncate(tmp_path / "out" / f".{NAME}.partial", 10)
    encode(collection, tmp_path / "out", existing="resume")
    assert [record["id"] for record in records(unfinished)] == [document["id"] for document in sources(collection)]
    assert leftovers(tmp_path / "out") == []
