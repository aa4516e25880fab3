"""Builds the wheel and the source distribution of the last commit into ``dist``, twice, and compares the bytes.

    python tools/dist.py [--output FOLDER]

The two builds have different folders and times. The times in the archives are those of the commit, and a source
distribution is packed again, since setuptools writes the present into it. So is the wheel, to make it smaller. Prints
the checksums, which a published file can be compared with.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
import zlib
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

MOST_BYTES = 46_000_000
"""Of the wheel."""

UNPACKED = {".gitattributes", ".gitignore"}
"""The tracked files that no source distribution needs."""

STRATEGIES = zlib.Z_DEFAULT_STRATEGY, zlib.Z_FILTERED, zlib.Z_HUFFMAN_ONLY


def main() -> int:
    """Builds, compares and checks, and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=ROOT / "dist", metavar="FOLDER")
    args = parser.parse_args()
    if args.output.exists() and not args.output.is_dir():
        parser.error(f"--output {args.output}: is no folder")
    epoch = int(read("git", "log", "-1", "--format=%ct"))
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        made = built(Path(first) / "a", epoch)
        time.sleep(2)  # the steps of times in a zip archive
        again = built(Path(second) / "another-folder", epoch)
        sums = [{path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths} for paths in (made, again)]
        if sums[0] != sums[1]:
            print(f"error: two builds differ: {sums}", file=sys.stderr)
            return 1
        wheel = next(path for path in made if path.suffix == ".whl")
        with tarfile.open(next(path for path in made if path.name.endswith(".gz"))) as files:
            packed = {name.partition("/")[2] for name in files.getnames()}
        if missing := [name for name in read("git", "ls-files").split() if name not in packed | UNPACKED]:
            print(f"error: the source distribution lacks {', '.join(missing)}; see MANIFEST.in", file=sys.stderr)
            return 1
        if (size := wheel.stat().st_size) > MOST_BYTES:
            print(f"error: {wheel.name} has {size:,} bytes, more than {MOST_BYTES:,}", file=sys.stderr)
            return 1
        args.output.mkdir(parents=True, exist_ok=True)
        for ending in (".whl", ".tar.gz"):  # the folder may hold other things
            for path in args.output.glob(f"pyserini_compneg-*{ending}"):
                path.unlink()
        for path in made:
            shutil.copy(path, args.output)
            print(f"{sums[0][path.name]}  {path.name}  ({path.stat().st_size:,} bytes)")
    return 0


def built(folder: Path, epoch: int) -> list[Path]:
    """Builds the last commit in a folder."""
    folder.mkdir()
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    command = [sys.executable, "-m", "build", "--outdir", str(folder / "dist"), str(folder)]
    environment = os.environ | {"SOURCE_DATE_EPOCH": str(epoch)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"error: the build failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    paths = sorted((folder / "dist").iterdir())
    for path in paths:
        content = path.read_bytes()
        path.write_bytes(repacked(content, epoch) if path.name.endswith(".tar.gz") else deflated(content))
    return paths


def repacked(content: bytes, epoch: int) -> bytes:
    """A source distribution with sorted files, no owners, and one time for all of them.

    >>> made = [io.BytesIO(), io.BytesIO()]
    >>> for seconds, target in enumerate(made):
    ...     with tarfile.open(fileobj=target, mode="w:gz") as archive:
    ...         member = tarfile.TarInfo("a")
    ...         member.mtime, member.uname = seconds, str(seconds)
    ...         archive.addfile(member)
    >>> made[0].getvalue() == made[1].getvalue()
    False
    >>> repacked(made[0].getvalue(), 9) == repacked(made[1].getvalue(), 9)
    True
    """
    target = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(content)) as source,
        gzip.GzipFile(filename="", fileobj=target, mode="wb", mtime=epoch) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for member in sorted(source.getmembers(), key=lambda member: member.name):
            file = source.extractfile(member) if member.isfile() else None
            member.mtime, member.uid, member.gid, member.uname, member.gname = epoch, 0, 0, "", ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            member.pax_headers = {}
            archive.addfile(member, file)
    return target.getvalue()


def deflated(content: bytes) -> bytes:
    """A wheel whose files are deflated by the strategy that suits each best, such as for weights of few values.

    >>> import random
    >>> weights = bytes(random.Random(0).choices(range(9), range(9), k=9999))
    >>> with zipfile.ZipFile(made := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive:
    ...     archive.writestr("weights", weights)
    >>> smaller = deflated(made.getvalue())
    >>> len(smaller) < len(made.getvalue()), zipfile.ZipFile(io.BytesIO(smaller)).testzip()
    (True, None)
    """
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as source, zipfile.ZipFile(target, "w") as archive:
        for member in source.infolist():
            data = source.read(member)
            packings = [partial(zlib.compressobj, 9, zlib.DEFLATED, -15, 9, strategy) for strategy in STRATEGIES]
            best = min(packings, key=lambda packing: len((one := packing()).compress(data) + one.flush()))
            with archive.open(member, "w") as file:
                vars(file)["_compressor"] = best()  # zipfile has no option for it
                file.write(data)
    return target.getvalue()


def read(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
