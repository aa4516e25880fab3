"""Files of JSON Lines."""

import gzip
import json
from pathlib import Path


def write_jsonl(path: Path, *records: object) -> Path:
    """Writes records, or lines as they are, in a folder that is made; packed if its name says so. Returns the path."""
    lines = (record if isinstance(record, str) else json.dumps(record, ensure_ascii=False) for record in records)
    data = "".join(f"{line}\n" for line in lines).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path
