from typing import Literal

import pytest
from pydantic import Field, field_validator
from refusals import refusal

from pyserini_compneg.support.errors import InputError
from pyserini_compneg.support.settings_files import Settings, parse_settings, read_settings


class Part(Settings):
    name: str
    kind: Literal["a", "b"] = "a"


class Whole(Settings):
    rate: float
    steps: int = Field(default=1, ge=1)
    parts: tuple[Part, ...] = ()
    last: Part | None = None

    @field_validator("steps")
    @classmethod
    def _odd(cls, steps: int) -> int:
        if steps % 2 == 0:
            raise ValueError(f"must be odd, got {steps}")
        return steps


def test_what_is_read(tmp_path):
    path = tmp_path / "whole.yaml"
    path.write_text("rate: 2e-5\nparts: [{name: α}, {name: no, kind: b}]\n", encoding="utf-8")
    whole = read_settings(path, Whole, InputError)
    assert whole == Whole(rate=2e-5, steps=1, parts=(Part(name="α"), Part(name="no", kind="b")))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rates: 1.0", ": unknown key 'rates'; did you mean rate?"),
        ("zzz: 1.0", ": unknown key 'zzz'; known are rate, steps, parts, last"),
        ("steps: 2", ": the key 'rate' is missing"),
        ("rate: '1'", ": rate: expected a number, got '1'"),
        ("rate: true", ": rate: expected a number, got True"),
        ("rate: .inf", ": rate: expected a finite number, got inf"),
        ("rate: 1\nsteps: 2.0", ": steps: expected a whole number, got 2.0"),
        ("rate: 1\nsteps: 0", ": steps: expected a number from 1, got 0"),
        ("rate: 1\nparts: [7]", ": parts[0]: expected keys and values, got 7"),
        ("rate: 1\nparts: [{name: x, kind: c}]", ": parts[0].kind: expected 'a' or 'b', got 'c'"),
        ("rate: 1\nparts: [{name: x, kin: c}]", ": parts[0]: unknown key 'kin'; did you mean kind?"),
        ("rate: 1\nlast: {name: x, kin: c}", ": last: unknown key 'kin'; did you mean kind?"),
        ("rate: 1\nsteps: 4", ": steps: must be odd, got 4"),
        ("", ": expected keys and values, got nothing"),
        ("- 1", ": expected keys and values, got [1]"),
        ("rate: 1\nrate: 2", ":2: not valid YAML: rate is given twice"),
        ("rate: [", ":1: not valid YAML: expected the node content, but found '<stream end>'"),
        ("rate: 2020-12-31", ": rate: expected a number, got '2020-12-31'"),
        ("rate: 1_000", ": rate: expected a number, got '1_000'"),
        ("rate: 1:30", ": rate: expected a number, got '1:30'"),
        ("rate: ١", ": rate: expected a number, got '١'"),
        ("rate: 1\nsteps: 0x1f", ": steps: expected a whole number, got '0x1f'"),
        ("yes: 1", ": unknown key 'yes'; known are rate, steps, parts, last"),
        ("1.50: 1", ": unknown key '1.50'; known are rate, steps, parts, last"),
        ("{1: a, '1': b}", ":1: not valid YAML: 1 is given twice"),
        ("rate: !!int ''", ":1: not valid YAML: the tag !!int; write values plainly, and texts in quotes"),
        ("rate: !!timestamp x", ":1: not valid YAML: the tag !!timestamp; write values plainly, and texts in quotes"),
        ("rate: !x {}", ":1: not valid YAML: the tag !x; write values plainly, and texts in quotes"),
        ("rate: {a: b}", ": rate: expected a number, got {'a': 'b'}"),
        ("rate: 1\nparts: x", ": parts: expected a list, such as [a, b], got 'x'"),
        ("rate: 1\nparts: [{name: [a]}]", ": parts[0].name: expected a text, got ['a']"),
        (f"rate: {'x' * 5000}", f": rate: expected a number, got '{'x' * 56}..."),
        (f"{'x' * 500}: 1", f": unknown key '{'x' * 56}...; known are rate, steps, parts, last"),
        ("rate: &a [*a]", ": not valid YAML: Circular reference detected"),
        (f"rate: {'[' * 5000}", ": not valid YAML: nested too deeply"),
    ],
)
def test_what_is_refused(text, message):
    assert refusal(parse_settings, text, "x.yaml", Whole, InputError, error=InputError) == f"x.yaml{message}"


@pytest.mark.parametrize("level", ["[{}]", "{{<<: [{}]}}"])
def test_aliases_do_not_fill_the_memory(level):
    """Thirty lines, each of which repeats the one before nine times; but what is short may be repeated."""
    part = "rate: 1\nparts: [&x {name: x}, *x]"
    assert parse_settings(part, "x.yaml", Whole, InputError).parts == (Part(name="x"), Part(name="x"))
    lines = ["a0: &a0 {name: x}"]
    lines += [f"a{i}: &a{i} " + level.format(", ".join([f"*a{i - 1}"] * 9)) for i in range(1, 30)]
    with pytest.raises(InputError, match=r"^x.yaml:\d: not valid YAML: more than 1,000,000 values and characters,"):
        parse_settings("\n".join(lines), "x.yaml", Whole, InputError)


@pytest.mark.parametrize("text", ['rate: "half \\uD83D"', f"rate: {'9' * 5000}", f"rate: 0x{'f' * 5000}"])
def test_a_fault_is_one_line(text):
    with pytest.raises(InputError) as caught:
        parse_settings(text, "x.yaml", Whole, InputError)
    assert str(caught.value).startswith("x.yaml:") and "\n" not in str(caught.value)


def test_what_cannot_be_read(tmp_path):
    (tmp_path / "odd.yaml").write_bytes(b"title: \xff")
    for name, reason in (("odd.yaml", "not UTF-8 text"), ("none.yaml", "no such file or directory")):
        text = refusal(read_settings, tmp_path / name, Whole, InputError, error=InputError)
        assert text == f"{tmp_path / name}: cannot be read: {reason}"
