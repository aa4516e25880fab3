"""Compare two operators for NOT on judged topics: two runs, a measure, and whether the difference is significant.

python examples/compare_operators.py
"""

from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

from pyserini_compneg.commands.main import main

SAMPLE = Path(str(files("pyserini_compneg") / "resources" / "sample"))
TOPICS = str(SAMPLE / "queries.jsonl")  # topics with their judgements, in QUEST's format

with TemporaryDirectory() as folder:
    index = f"{folder}/films"
    main(["index", "--collection", str(SAMPLE / "documents.jsonl.gz"), "--index", index])
    runs = []
    for difference in ("disentangled", "nrf"):
        runs.append(f"{folder}/{difference}.txt")
        main(["search", "--index", index, "--topics", TOPICS, "--difference", difference, "--output", runs[-1]])
    main(["eval", "--qrels", TOPICS, "--run", *runs, "--by", "template", "-m", "ndcg_cut.10"])
