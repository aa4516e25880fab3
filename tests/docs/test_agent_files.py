"""The skill for agents: its commands have the flags of their parsers."""

import re
import shlex
from importlib import import_module
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
SKILL = (ROOT / ".agents/skills/compneg/SKILL.md").read_text("utf-8")


def test_commands_of_the_skill_are_parsed():
    commands = re.findall(r"^    compneg (.*)$|`compneg ((?!--version)[^`]*)`", SKILL, re.M)
    verbs = set()
    for shown, inline in commands:
        verb, *flags = shlex.split(shown or inline)
        import_module(f"pyserini_compneg.commands.{verb}")._parser().parse_args(flags)
        verbs.add(verb)
    assert verbs >= {"index", "update", "search", "read", "explain", "doc", "eval"}


def test_the_head_of_the_skill_names_its_folder():
    head = yaml.safe_load(SKILL.split("---")[1])
    assert head["name"] == "compneg"
    assert len(head["description"]) < 1024
