import sys

from pyserini_compneg.progress import progress


def test_silent_off_a_terminal(capsys):
    assert list(progress(range(3), 3, " docs", "reading")) == [0, 1, 2]
    with progress(None, None, " docs", "reading") as bar:
        bar.update(2)
    assert capsys.readouterr() == ("", "")


def test_shown_on_standard_error_of_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert list(progress(range(3), 3, " docs", "reading")) == [0, 1, 2]
    out, err = capsys.readouterr()
    assert out == ""
    assert "reading: 100%" in err
