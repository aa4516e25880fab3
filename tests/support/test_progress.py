import logging
import sys

import pytest

from pyserini_compneg.support import progress as module
from pyserini_compneg.support.progress import count_tokens, progress, token_rate


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(module, "SECONDS", 30.0)
    return now


def test_short_work_is_silent_in_a_log(capsys, caplog):
    caplog.set_level(logging.INFO)
    assert list(progress(range(3), 3, " docs", "reading")) == [0, 1, 2]
    with progress(None, None, " docs", "reading") as bar:
        bar.update(2)
    assert (capsys.readouterr(), caplog.records) == (("", ""), [])


@pytest.mark.parametrize(
    ("unit", "total", "done", "lines"),
    [
        (
            " docs",
            4000,
            1000,
            [
                "encoding: 1,620 of 4,000 docs (1,000 by an earlier run) in 0:00:31, 20 a second",
                "encoding: 4,000 of 4,000 docs (1,000 by an earlier run) in 0:00:40, 75 a second",
            ],
        ),
        (
            " docs",
            None,
            0,
            ["encoding: 620 docs in 0:00:31, 20 a second", "encoding: 3,000 docs in 0:00:40, 75 a second"],
        ),
        ("B", 0, 0, ["encoding: 0 MB in 0:00:31, 0.0 a second", "encoding: 0 MB in 0:00:40, 0.0 a second"]),
    ],
)
def test_the_lines_of_a_log(caplog, clock, unit, total, done, lines):
    caplog.set_level(logging.INFO)
    with progress(None, total, unit, "encoding", done=done) as bar:
        bar.update(600)
        clock[0] += 31
        bar.update(20)
        clock[0] += 9
        bar.update(2380)
    assert caplog.messages == lines
    assert caplog.records[0].progress == {
        **{"work": "encoding", "done": done + 620, "total": total, "unit": unit.strip(), "done_before": done},
        **{"seconds": 31.0, "per_second": 20.0},
    }


def test_the_last_line_of_a_log_stands_once(caplog, clock):
    caplog.set_level(logging.INFO)
    with progress(None, 2, " queries", "searching") as bar:
        clock[0] += 31
        bar.update(2)
    assert caplog.messages == ["searching: 2 of 2 queries in 0:00:31, 0.1 a second"]


def test_the_rate_of_tokens(caplog, clock):
    """A long batch moves the lines on, even if no document is done."""
    caplog.set_level(logging.INFO)
    with progress(None, 4, " docs", "encoding") as bar, token_rate(bar):
        clock[0] += 20
        count_tokens(8000)
        clock[0] += 20
        count_tokens(8000)
        bar.update(4)
    count_tokens(10**6)
    line = "encoding: {} of 4 docs in 0:00:40, {} a second, 400 tokens/s"
    assert caplog.messages == [line.format(0, "0.0"), line.format(4, "0.1")]


def test_a_summary_is_for_what_is_done(caplog, clock):
    caplog.set_level(logging.INFO)
    with progress(None, None, " docs", "indexing", summary=True) as bar:
        clock[0] += 2
        bar.update(5)
        assert bar.n == 5
    with pytest.raises(KeyboardInterrupt), progress(None, None, " docs", "indexing", summary=True):
        raise KeyboardInterrupt
    assert caplog.messages == ["indexing: 5 docs in 0:00:02, 2.5 a second"]


def test_shown_on_standard_error_of_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert list(progress(range(3), 3, " docs", "reading")) == [0, 1, 2]
    out, err = capsys.readouterr()
    assert out == ""
    assert "reading: 100%" in err and "<" in err
    with progress(None, 3, " docs", "encoding") as bar, token_rate(bar):
        count_tokens(5)
    assert " tokens/s]" in capsys.readouterr().err
    with progress(None, 2, " runs", "table1", even=False) as bar:  # no estimate from a first run that takes long
        bar.update(2)
    err = capsys.readouterr().err
    assert "table1: 100%" in err and "<" not in err
