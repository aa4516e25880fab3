"""Carries out deploy/Dockerfile without a container engine, as root on Linux, and runs the image.

    python tools/image.py build BASE IMAGE
    python tools/image.py run [--volume HOST:TARGET]... IMAGE [COMMAND...]

``BASE`` is a folder with the root of the base image: of Debian, as debootstrap makes it, with Python in /usr/local.
``build`` copies it to the folder ``IMAGE``, carries out the lines of the last stage, and prints how large the image is.
``run`` does what ``docker run --read-only --tmpfs /tmp`` does: the user of the image, a read-only root, and the
processes and mounts in namespaces of their own. It repeats the health check until it succeeds.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
_UNSHARED = ("unshare", "--mount", "--pid", "--fork", "--kill-child")
_MOUNTS = """
mount --bind "$0" "$0" && mount -t proc proc "$0/proc" && mount --bind /dev/null "$0/dev/null" || exit 1
"""


@dataclass
class Image:
    """A root folder, and what the lines of a Dockerfile said about its processes."""

    root: str
    env: dict[str, str] = field(default_factory=lambda: {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"})
    folder: str = "/"
    user: str = "0"
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    health: list[str] = field(default_factory=list)

    def process(self, command: list[str], mounts: str = "") -> list[str]:
        """The command line that runs a command in the image."""
        inner = f'cd {shlex.quote(self.folder)} && exec "$@"'
        environment = [f"{name}={value}" for name, value in self.env.items()]
        chroot = ["chroot", f"--userspec={self.user}:{self.user}", self.root, "/usr/bin/env", "-i", *environment]
        within = [*chroot, "sh", "-c", inner, "sh", *command]
        return [*_UNSHARED, "sh", "-c", f'{_MOUNTS}{mounts}exec "$@"', self.root, *within]


def instructions(text: str) -> list[tuple[str, str]]:
    r"""The instructions of a Dockerfile with their arguments.

    >>> instructions("# a\nFROM b AS c\nRUN d \\\n  e\n")
    [('FROM', 'b AS c'), ('RUN', 'd e')]
    """
    lines = re.sub(r"^\s*#.*\n", "", text, flags=re.M)
    joined = re.sub(r"\s*\\\n\s*", " ", lines)
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in joined.splitlines() if line)]


def build(base: Path, target: Path) -> Image:
    """Carries out all lines; each stage has a root of its own, and the last one is the image."""
    stages: dict[str, Image] = {}
    image = Image("")
    passed = {"PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    for name, rest in instructions(DOCKERFILE.read_text("utf-8")):
        print(f"{name} {rest}", flush=True)
        words = rest.split()
        match name:
            case "FROM":
                stage = words[2] if len(words) > 1 else ""
                image = stages[stage] = Image(f"{target}-{stage}" if stage else str(target))
                shutil.rmtree(image.root, ignore_errors=True)
                subprocess.run(["cp", "-a", "--reflink=auto", str(base), image.root], check=True)
            case "WORKDIR":
                image.folder = rest
                Path(image.root + rest).mkdir(parents=True, exist_ok=True)
            case "COPY":
                source = Path(stages[words.pop(0).partition("=")[2]].root) if words[0].startswith("--") else ROOT
                copy([source / word.lstrip("/") for word in words[:-1]], image, words[-1])
            case "RUN":
                run = Image(image.root, image.env | passed, image.folder, image.user)
                subprocess.run(run.process(["sh", "-c", rest]), check=True)
            case "ENV":
                for word in words:
                    key, _, value = word.partition("=")
                    image.env[key] = value.replace("$PATH", image.env["PATH"])
            case "USER":
                image.user = rest
            case "HEALTHCHECK":
                image.health = json.loads(rest.partition("CMD ")[2])
            case "ENTRYPOINT":
                image.entrypoint = json.loads(rest)
            case "CMD":
                image.command = json.loads(rest)
            case "EXPOSE":
                pass
            case _:
                raise SystemExit(f"error: {DOCKERFILE}: {name}: is no instruction that this tool knows")
    Path(f"{target}.json").write_text(json.dumps(asdict(image)), "utf-8")
    sizes = subprocess.check_output(["du", "-s", "--apparent-size", "-B1000000", base, target], text=True)
    before, after = (int(line.split()[0]) for line in sizes.splitlines())
    print(f"the base has {before} MB, the image {after} MB, {after - before} MB more")
    return image


def copy(sources: list[Path], image: Image, target: str) -> None:
    """Copies as COPY does: the content of a folder, or a file into a folder whose name ends with a slash."""
    to = Path(image.root + "/") / Path(image.folder, target).relative_to("/")
    for source in sources:
        if source.is_dir():
            shutil.copytree(source, to, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
        else:
            file = to / source.name if target.endswith("/") else to
            file.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, file)


def run(image: Image, volumes: list[str], command: list[str]) -> int:
    """Runs the image, prints when it is healthy, and returns its exit status."""
    mounts = ""
    for volume in volumes:
        source, target = volume.split(":")[:2]
        there = Path(image.root) / target.lstrip("/")
        there.mkdir(parents=True, exist_ok=True)
        mounts += f"mount --bind -o ro {shlex.quote(source)} {shlex.quote(str(there))} || exit 1\n"
    mounts += 'mount -o remount,bind,ro "$0" && mount -t tmpfs tmpfs "$0/tmp" && chmod 1777 "$0/tmp" || exit 1\n'
    start = time.monotonic()
    process = subprocess.Popen(image.process([*image.entrypoint, *(command or image.command)], mounts))
    signal.signal(signal.SIGTERM, lambda *_: stop(process.pid))
    while not command and process.poll() is None:
        if subprocess.run(image.process(image.health), stderr=subprocess.DEVNULL).returncode == 0:
            print(f"healthy after {time.monotonic() - start:.1f} s", flush=True)
            break
        time.sleep(1)
    return process.wait()


def stop(unshare: int) -> None:
    """Ends the first process of the image, as ``docker stop`` does; unshare ignores the signal."""
    for child in Path(f"/proc/{unshare}/task/{unshare}/children").read_text("ascii").split():
        os.kill(int(child), signal.SIGTERM)


def main() -> int:
    """Builds or runs, and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="verb", required=True)
    building = commands.add_parser("build")
    building.add_argument("base", type=Path)
    building.add_argument("image", type=Path)
    running = commands.add_parser("run")
    running.add_argument("image", type=Path)
    running.add_argument("--volume", action="append", default=[], metavar="HOST:TARGET")
    running.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    settings = Path(f"{args.image}.json")
    if args.verb == "build":
        if not args.base.is_dir():
            parser.error(f"{args.base}: is no folder")
        if args.image.exists() and not settings.exists():  # its former content is deleted
            parser.error(f"{args.image}: exists, and was not built by this tool; name another folder")
        build(args.base.resolve(), args.image.resolve())
        return 0
    if not settings.is_file():
        parser.error(f"{settings}: is missing; build the image first")
    for volume in args.volume:
        if not re.fullmatch(r"[^:]+:/[^:]+", volume) or ".." in volume.split("/"):
            parser.error(f"--volume {volume}: expected HOST:/TARGET")
    return run(Image(**json.loads(settings.read_text("utf-8"))), args.volume, args.command)


if __name__ == "__main__":
    sys.exit(main())
