import argparse
import errno
import json
import os
import subprocess
import sys

import pytest

from pyserini_compneg.commands.running import run_main
from pyserini_compneg.support.errors import IndexFormatError, InputError


def usage(argv):
    parser = argparse.ArgumentParser(prog="tool")
    parser.add_argument("--index", required=True)
    parser.parse_args(argv)


def failing(error):
    def main(argv):
        raise error

    return main


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (IndexFormatError("no index in x"), 2, "error: no index in x\n"),
        (InputError("bad input"), 2, "error: bad input\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (OSError(errno.ENOSPC, "No space left on device"), 1, "error: no space left on device\n"),
        (PermissionError(errno.EACCES, "Permission denied", "a/b"), 1, "error: a/b: permission denied\n"),
    ],
)
def test_an_end_is_one_line_and_a_code(capsys, error, code, said):
    assert run_main(failing(error)) == code
    assert capsys.readouterr() == ("", said)


def test_codes_of_done_usage_and_help(capsys):
    assert run_main(lambda argv: None) == 0
    assert run_main(lambda argv: 3) == 3
    assert run_main(usage, ["--index", "x"]) == 0
    assert run_main(usage, ["--help"]) == 0
    assert run_main(usage, []) == 2
    assert "--index" in capsys.readouterr().err


def test_a_bug_is_no_user_error():
    with pytest.raises(ZeroDivisionError):
        run_main(lambda argv: 1 // 0)


def run_script(script, **options):
    code = f"import sys\nfrom pyserini_compneg.commands.running import run_main\n{script}\nsys.exit(run_main(main))"
    return subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, **options)


@pytest.mark.slow
@pytest.mark.parametrize("lines", [1, 100_000])
def test_a_closed_pipe_is_quiet(lines):
    read_end, write_end = os.pipe()
    os.close(read_end)
    script = f"def main(argv):\n    for i in range({lines}): print(i)"
    with run_script(script, stdout=write_end) as process:
        os.close(write_end)
        assert process.communicate()[1] == b""
    assert process.returncode == 0


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize(
    ("end", "code", "said"),
    [
        ("print('x')", 1, "error: standard output: no space left on device"),
        ("print('x'); sys.exit()", 1, "error: standard output: no space left on device"),
        ("print('x'); raise CompNegError('bad')", 2, "error: bad"),
    ],
)
def test_a_full_standard_output_is_one_line(end, code, said):
    script = f"from pyserini_compneg.support.errors import CompNegError\ndef main(argv):\n    {end}"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    with open("/dev/full", "w") as full, run_script(script, stdout=full, env=environment) as process:
        assert process.communicate()[1].decode() == f"{said}{os.linesep}"
    assert process.returncode == code


@pytest.mark.slow
def test_warnings_of_the_package_and_utf8_in_any_locale():
    script = "import logging\ndef main(argv):\n    logging.getLogger('x').warning('%s is odd', 7)\n    print('\u2229')"
    environment = {**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONPATH": os.pathsep.join(sys.path)}
    with run_script(script, stdout=subprocess.PIPE, env=environment) as process:
        out, err = process.communicate()
    assert out.decode() == f"\u2229{os.linesep}"
    assert err.decode() == f"warning: 7 is odd{os.linesep}"


def test_no_message_steers_the_terminal_and_none_is_endless(capsys):
    steering = "\x1b[31m\r\x85\u2028\u202e\u2066"
    error = IndexFormatError(f"doc{steering}'\n{'x' * 100_000}.", below=f"  {'y' * 1000}{steering}\n  ^")
    assert run_main(failing(error), []) == 2
    text = capsys.readouterr().err
    first, *below = text.split("\n")
    assert first.startswith("error: doc [31m     ' xxx") and first.endswith("xx.") and len(first) < 600
    assert [line[:3] for line in below] == ["  y", "  ^", ""] and all(map(str.isprintable, below))
    assert run_main(failing(error), ["--log-format", "json"]) == 2
    assert json.loads(capsys.readouterr().err)["message"] == text.removeprefix("error: ").removesuffix("\n")
