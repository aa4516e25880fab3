"""What is kept of the messages of libraries, and of the places of errors."""

from pathlib import Path

import pytest

from pyserini_compneg.support.errors import EncodingError, QueryError, first_line, in_one_line


@pytest.mark.parametrize(
    ("cause", "kept"),
    [
        (ValueError("\nno such operator\nand much more"), "no such operator"),
        (
            ValueError("Error for field 'eps':\n    TypeError: expected float\nmore"),
            "Error for field 'eps': TypeError: expected float",
        ),
        (ValueError("an end:"), "an end:"),
        (ValueError(""), "ValueError"),
        (KeyError("gelux"), "no 'gelux'"),
        (
            ValueError(f"Not known. {'This could be the version. ' * 9}"),
            f"Not known{'. This could be the version' * 7}",
        ),
        (ValueError("x" * 300), "x" * 200),
        (RuntimeError("err == 0. The allocator cannot get 8 bytes"), "err == 0. The allocator cannot get 8 bytes"),
    ],
)
def test_messages_of_libraries_are_one_line(cause, kept):
    assert first_line(cause) == kept
    with pytest.raises(EncodingError) as caught, in_one_line(EncodingError, "failed", where="m", remedy="stop"):
        raise cause
    assert str(caught.value) == f"m: failed: {kept}; stop"


def test_places_are_left_out_by_text_or_path():
    error = EncodingError("failed", where=Path("/m/model.onnx")).at("m")
    assert str(error.without(Path("/m/model.onnx"))) == "m: failed"


def test_an_error_of_another_class_has_the_same_fields():
    error = EncodingError("failed", where="line 1", remedy="stop", below="^").at("m")
    assert str(error.recast(QueryError)) == str(error) == "m: line 1: failed; stop\n^"
    assert error.recast(QueryError, "go on").message == "m: line 1: failed; go on"
