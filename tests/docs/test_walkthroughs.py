"""The walkthroughs of CONTRIBUTING.md: their changes apply to a copy of the package, and their scripts run on it.

``COMPNEG_UPDATE_PAGES=1`` writes what was printed into the page.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.once]

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "CONTRIBUTING.md"
TEXT = PAGE.read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### (Add .+?)\n(.*?)(?=^### |\Z)", TEXT, re.M | re.S))
SCRIPT = re.compile(r"^```python\n(.*?)^```\n\n((?:    [^\n]+\n)+)", re.M | re.S)


def apply(change, root):
    """Makes the changes of a block in the folder ``root``."""
    for path, hunks in re.findall(r"^\+\+\+ b/(.+)\n((?:[@+ ].*\n|\+\n)+)", change, re.M):
        file = root / path
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        file.unlink(missing_ok=True)  # the link to the original
        for hunk in re.split(r"^(?=@@)", hunks, flags=re.M):
            name = hunk.startswith("@@") and hunk.splitlines()[0].removeprefix("@@ ")
            known = [line[1:] for line in hunk.splitlines() if line.startswith(" ")]
            place = next((n for n, line in enumerate(lines) if name and re.match(rf"{name}\b", line)), len(lines))
            if known:
                place = lines.index(known[-1], place if place < len(lines) else 0) + 1
            lines[place:place] = [line[1:] for line in hunk.splitlines() if line.startswith("+")]
        file.write_text("\n".join([*lines, ""]), encoding="utf-8")


@pytest.mark.parametrize("title", SECTIONS)
def test_the_walkthrough_runs(title, tmp_path):
    package = tmp_path / "copy" / "pyserini_compneg"
    shutil.copytree(ROOT / "pyserini_compneg", package, copy_function=os.symlink)
    for change in re.findall(r"^```diff\n(.*?)^```$", SECTIONS[title], re.M | re.S):
        apply(change, package.parent)
    scripts = SCRIPT.findall(SECTIONS[title])
    assert scripts
    for script, shown in scripts:
        run = subprocess.run(
            [sys.executable, "-c", script],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(package.parent)},
            capture_output=True,
            text=True,
        )
        assert run.returncode == 0, run.stderr
        printed = "".join(f"    {line}\n" for line in run.stdout.splitlines())
        if os.environ.get("COMPNEG_UPDATE_PAGES"):
            PAGE.write_text(
                PAGE.read_text(encoding="utf-8").replace(f"```\n\n{shown}", f"```\n\n{printed}", 1), "utf-8"
            )
        else:
            assert printed == shown
