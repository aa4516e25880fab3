import argparse
import math
from dataclasses import dataclass

import pytest

from pyserini_compneg.encode.corpus import EncodeSettings
from pyserini_compneg.lucene import IndexSettings
from pyserini_compneg.support import progress
from pyserini_compneg.support.errors import ArgumentError
from pyserini_compneg.support.options import COUNT, POSITIVE, add_flags, check_options, given_options, option


@dataclass(frozen=True)
class Settings:
    top_terms: int | None = option(None, "keep N", COUNT)
    scale: float = option(2.5, "multiply by X", POSITIVE)
    signed: bool = option(False, "take negative weights")
    kind: str = option("a", "which one", choices=("a", "b"), renamed={"first": "a"})
    share: str | float = option(0.5, "a share, or any", POSITIVE, choices=("any",), metavar="SHARE")
    internal: int = 3

    def __post_init__(self):
        check_options(self)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"top_terms": 0}, "top_terms must be a whole number from 1, got 0"),
        ({"top_terms": True}, "top_terms must be a whole number from 1, got True"),
        ({"top_terms": 1.0}, "top_terms must be a whole number from 1, got 1.0"),
        ({"scale": math.nan}, "scale must be a finite number above 0, got nan"),
        ({"scale": None}, "scale must be a finite number above 0, got None"),
        ({"kind": "c"}, "kind must be one of a, b, got 'c'"),
        ({"share": "0.5"}, "share must be one of any, or a finite number above 0, got '0.5'"),
    ],
)
def test_values_are_checked(given, said):
    with pytest.raises(ArgumentError) as refused:
        Settings(**given)
    assert str(refused.value) == said


def test_flags_give_settings():
    parser = argparse.ArgumentParser()
    add_flags(parser, Settings)
    assert Settings(**given_options(Settings, parser.parse_args([]))) == Settings()
    args = parser.parse_args(["--top-terms", "5", "--scale", "1", "--signed", "--kind", "b"])
    assert given_options(Settings, args) == {"top_terms": 5, "scale": 1.0, "signed": True, "kind": "b"}
    assert [parser.parse_args(["--share", text]).share for text in ("any", "2")] == ["any", 2.0]
    assert "--internal" not in parser.format_help()


def test_a_former_name_of_a_choice_is_accepted_with_one_warning(caplog, monkeypatch):
    monkeypatch.setattr(progress, "_said_in_process", set())
    parser = argparse.ArgumentParser()
    add_flags(parser, Settings)
    assert parser.parse_args(["--kind", "first"]).kind == Settings(kind="first").kind == "a"
    assert caplog.messages == ["kind first is now a"]
    assert "first" not in parser.format_help()


@pytest.mark.parametrize(("settings", "further"), [(IndexSettings, "replace"), (EncodeSettings, "update")])
def test_ways_to_treat_an_existing_result(settings, further):
    allowed = {"refuse": (False, False), "resume": (False, True), "overwrite": (True, False), further: (True, True)}
    allowed["resume or overwrite"] = (True, True)
    for existing, expected in allowed.items():
        made = settings(existing=existing)
        assert (made.may_overwrite, made.may_resume) == expected
    with pytest.raises(ArgumentError, match=f"^existing must be one of .*, {further}, got 'replace it'$"):
        settings(existing="replace it")
