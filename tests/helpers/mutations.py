"""Changes contents of files as no tool would: one random change of a JSON value, of a column, or of the bytes."""

import gzip
import json
import re

_RAW = re.compile('"@@(\\d+)@@"')
_TWICE = "@@twice@@"

DEEP = 10**5
NUMBERS = ["0", "-1", "1.5", "-0.0", "1e400", "1e-400", "9" * 5000, "2147483648", "9223372036854775808", "1e308"]
TEXTS = [
    *["", " ", "١", "1_000", "0x10", "nan", "-inf", "+7", "1e400", "None", "true", "no", "=", "..", "/", "~", "*"],
    *["%s", "\x1b[31m", "a\nb", "a\r\nb", "\u202eb", "\u2066b", "\u2028b", "\x85b", "\x00", "\x7f", "\ufeffa", "a\tb"],
    *["\u3000", "x" * 10**5, "(" * 2000, "[" * 2000, '"', "'", "\\", "{}", "{0}", "$name", "a∩b", "¬a", "\ud800"],
    "é" * 300,
]
JSON_VALUES = [
    *("null", "true", "false", "[]", "{}", "[null]", '{"a": null}', "NaN", "Infinity", "-Infinity", *NUMBERS),
    *("[" * DEEP, "[" * DEEP + "]" * DEEP, '{"a":' * DEEP, '"\\ud800"', '"\\u0000"', "01", "1.", ".5", "'a'", "", ","),
    *(json.dumps(text) for text in TEXTS),
]
YAML_VALUES = [
    *["!!int ''", "!!bool maybe", "!!timestamp nope", "!!binary x", "!!float x", "!!set {a}"],
    *["!!python/name:os.system", "!!omap [a]", "!!pairs [a]", "!!str [a]", "!x y", "&a [*a]", "*nothing", "yes", "no"],
    *["~", ".nan", ".inf", "0o7", "1:30", "2020-12-31", "<<", "|", ">", "? a", "- a", "%", "@", "`", "[*x, *x]"],
    *["{<<: [1]}", "{<<: {a: 1}}"],
]
COLUMNS = [*NUMBERS, *TEXTS, "a b", "1\t2"]


def mutated(random, content, kind):
    """The content, changed.

    Args:
        random: Decides what is changed.
        content: Bytes.
        kind: ``json``; ``yaml``, a value as YAML takes JSON; ``jsonl``, a value a line; ``columns``; ``bytes``.
    """
    if kind == "bytes" or random.random() < 0.3:
        return _bytes(random, content)
    if kind == "columns":
        return _columns(random, content.decode()).encode(errors="surrogatepass")
    lines = content.decode().splitlines() if kind == "jsonl" else [content.decode()]
    place = random.randrange(len(lines))
    values = JSON_VALUES + YAML_VALUES * 2 if kind == "yaml" else JSON_VALUES
    lines[place] = _json(random, lines[place], values)
    return "\n".join([*lines, ""]).encode(errors="surrogatepass")


def _json(random, text, values):
    top = [json.loads(text)]
    raw = []
    for _ in range(random.choice([1, 1, 1, 2])):
        container, key = random.choice(list(_places(top)))
        change = random.choice(["replace", "replace", "replace", "drop", "twice", "rename", "copy", "move"])
        if change == "replace" or container is top:
            raw.append(random.choice(values))
            container[key] = f"@@{len(raw) - 1}@@"
        elif change == "drop":
            del container[key]
        elif change == "copy" or isinstance(container, list):
            other, place = random.choice(list(_places(top)))
            other[place] = json.loads(json.dumps(container[key]))
        elif change == "twice":
            container[key + _TWICE] = container[key]
        elif change == "rename":
            container[random.choice([*TEXTS, key.upper(), key + "s", key[:-1]])] = container.pop(key)
        else:
            container[f"x{key}"] = {key: container.pop(key)}
    text = json.dumps(top[0], ensure_ascii=random.random() < 0.5).replace(_TWICE, "")
    return _RAW.sub(lambda found: raw[int(found[1])], text)


def _places(value):
    """Each value in lists and objects, as the list or object and the key."""
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])


def _columns(random, text):
    parts = re.split(r"([\t \n,])", text)
    for _ in range(random.choice([1, 1, 2])):
        place = random.randrange(len(parts))
        change = random.choice(["replace", "replace", "drop", "twice"])
        one = parts[place : place + 1]
        parts[place : place + 1] = {"replace": [random.choice(COLUMNS)], "drop": [""], "twice": one * 2}[change]
    return "".join(parts)


def _bytes(random, content):
    place = random.randrange(len(content) + 1)
    flipped = bytearray(content)
    for _ in range(random.choice([1, 3, 30])):
        flipped[random.randrange(len(flipped))] ^= 1 << random.randrange(8)
    inserted = random.choice(
        [b"\0", b"\x1b[2J", b"\xff", b"\n", b"\r", b"\x85", b"\xe2\x80\xa8", b"\xed\xa0\x80", b"x" * 10**5]
    )
    return random.choice(
        [
            b"",
            b"\n\n",
            content[:place],
            content[place:],
            bytes(flipped),
            content[:place] + inserted + content[place:],
            b"\xef\xbb\xbf" + content,
            b"\xef\xbb\xbf" * 2 + content,
            content.decode(errors="replace").encode("utf-16"),
            content.decode(errors="replace").encode("utf-32"),
            content.replace(b"\n", b"\r"),
            content.replace(b"\n", b"\r\n"),
            content * 2,
            gzip.compress(content)[: random.choice([-1, -9, 20])],
            gzip.compress(gzip.compress(content)),
            b"PK\x03\x04" + content,
            b"[" * DEEP,
            b'{"a":' * DEEP,
            b"- " * 10**4,
        ]
    )
