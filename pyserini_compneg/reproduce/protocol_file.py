"""Reads protocols from YAML files, strictly: an unknown key, a wrong type or a name given twice is one clear line."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from pathlib import Path

from pyserini_compneg.errors import ProtocolError
from pyserini_compneg.files import slug
from pyserini_compneg.reproduce.protocol import READINGS, Interference, Protocol, RowPlan, SectionPlan
from pyserini_compneg.reproduce.yaml_node import LARGEST, Node, load_yaml

_FOLDER = "protocols"


def protocol_names() -> list[str]:
    """The protocols that come with the package.

    >>> {"table1", "table3", "table5", "figure3"} <= {*protocol_names()}
    True
    """
    return sorted(
        entry.name.removesuffix(".yaml")
        for entry in files(__package__).joinpath(_FOLDER).iterdir()
        if entry.name.endswith(".yaml")
    )


def read_protocol(name: str) -> Protocol:
    """Reads a protocol.

    Args:
        name: One that comes with the package, or the path of a YAML file.

    Raises:
        ProtocolError: No such protocol, or a file that is none; the message names file and place.
    """
    if name in protocol_names():
        place, text = name, files(__package__).joinpath(_FOLDER, f"{name}.yaml").read_text(encoding="utf-8")
    else:
        path = Path(name)
        if path.suffix not in (".yaml", ".yml"):
            known = ", ".join(protocol_names())
            raise ProtocolError(f"no protocol {name!r}; expected one of {known}, or the path of a .yaml file")
        try:
            place, text = name, path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as cause:
            raise ProtocolError(f"{name}: cannot be read: {getattr(cause, 'strerror', None) or 'no UTF-8'}") from None
    return _protocol(Path(place).stem, Node(load_yaml(text, place), place))


def _protocol(name: str, node: Node) -> Protocol:
    measures = node.texts("measures")
    sections = tuple(_section(child, measures) for child in node.nodes("sections"))
    _check_distinct([slug(section.title) for section in sections], "section", node.place)
    found = node.get("interference", dict, None)
    datasets = node.texts("datasets")
    hits = node.get("hits", int, 1000)
    examples = node.get("examples", int, 0)
    if not measures or hits < 1 or examples < 0:
        raise ProtocolError(
            f"{node.place}: needs a measure, 'hits' from 1 and 'examples' from 0, got {len(measures)}, {hits} and "
            f"{examples}"
        )
    protocol = Protocol(
        name=name,
        title=node.get("title", str),
        about=" ".join(node.get("about", str).split()),
        datasets=datasets,
        papers=_papers(node, datasets),
        splits=node.texts("splits"),
        measures=measures,
        sections=sections,
        hits=hits,
        examples=examples,
        interference=None if found is None else _interference(Node(found, f"{node.place}: interference"), sections),
    )
    node.done()
    return protocol


def _papers(node: Node, datasets: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    papers = Node(node.get("papers", dict, {}), f"{node.place}: papers")
    found = {kind: papers.texts(kind) for kind in datasets if kind in papers.content}
    papers.done()
    return found


def _section(node: Node, measures: tuple[str, ...]) -> SectionPlan:
    title, templates = node.get("title", str), node.texts("templates", ())
    rows: list[RowPlan] = []
    sweep = ""
    for child in node.nodes("rows"):
        swept = child.get("sweep", dict, None)
        row = _row(child, measures)
        if swept is None:
            rows.append(row)
            continue
        symbol = _sweep(Node(swept, f"{child.place}: sweep"), row, rows)
        if sweep not in ("", symbol):
            raise ProtocolError(
                f"{node.place}: sweeps over {sweep!r} and over {symbol!r}, which have no curve in common; put one into "
                "a section of its own"
            )
        sweep = symbol
    node.done()
    _check_distinct([row.name for row in rows], "row", node.place)
    if not any(row.method for row in rows):
        raise ProtocolError(f"{node.place}: no row has a method")
    return SectionPlan(title, tuple(rows), templates, sweep)


def _row(node: Node, measures: tuple[str, ...]) -> RowPlan:
    published = node.get("published", list, [])
    if len(published) > len(measures) or not all(value is None or _is_figure(value) for value in published):
        raise ProtocolError(f"{node.place}: 'published' must be figures in the order of the measures, got {published}")
    row = RowPlan(
        name=node.get("name", str),
        formula=node.get("formula", str, ""),
        method=node.get("method", str, None),
        settings=node.get("settings", dict, {}),
        ablation=node.get("ablation", str, None),
        reads=node.get("reads", str, READINGS[0]),
        published={name: value for name, value in zip(measures, published, strict=False) if value is not None},
        note=node.get("note", str, ""),
    )
    node.done()
    if not all(isinstance(name, str) for name in row.settings):
        raise ProtocolError(f"{node.place}: 'settings' must have texts as keys")
    if row.reads not in READINGS:
        raise ProtocolError(f"{node.place}: 'reads' must be one of {', '.join(READINGS)}, got {row.reads!r}")
    return row


def _is_figure(value: object) -> bool:
    """A number that is printed and drawn; YAML also has infinities, and truth values that count as 0 and 1."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= LARGEST


def _sweep(node: Node, row: RowPlan, rows: list[RowPlan]) -> str:
    """Adds a row for each value of a setting."""
    setting, values = node.get("setting", str), node.get("values", list)
    symbol: str = node.get("symbol", str)
    if not values or not all(map(_is_figure, values)):
        raise ProtocolError(f"{node.place}: 'values' must be numbers, got {values}")
    node.done()
    rows += [
        replace(
            row,
            name=f"{row.name}, {symbol} = {value:g}",
            settings={**row.settings, setting: value},
            published={},
            swept=(row.name, float(value)),
        )
        for value in values
    ]
    return symbol


def _interference(node: Node, sections: tuple[SectionPlan, ...]) -> Interference:
    found = Interference(node.get("section", str), node.get("bins", int, 4), node.texts("rows", ()))
    node.done()
    section = next((one for one in sections if one.title == found.section), None)
    if section is None:
        raise ProtocolError(f"{node.place}: no section {found.section!r}")
    unknown = set(found.rows) - {row.name for row in section.rows}
    if unknown:
        raise ProtocolError(f"{node.place}: no row {sorted(unknown)[0]!r} in section {section.title!r}")
    if found.bins < 1:
        raise ProtocolError(f"{node.place}: 'bins' must be 1 or more, got {found.bins}")
    return found


def _check_distinct(names: list[str], what: str, place: str) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ProtocolError(f"{place}: the {what} {twice!r} is there twice")
