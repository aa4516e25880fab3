"""Compares the engine with the oracle on random queries, for as long as you like: ``python tests/oracle/run.py -h``."""

import argparse
import json
import logging
import sys
import time
from collections import Counter

from cases import draw_cases, failures, report, shrunk


def tupled(value):
    """Lists of JSON as tuples."""
    return tuple(map(tupled, value)) if isinstance(value, list) else value


def main():
    """Returns 1 if a query was answered wrongly."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1, help="how long (default: 1)")
    parser.add_argument("--seed", type=int, default=0, help="of the first index (default: 0)")
    parser.add_argument("--queries", type=int, help="stop after so many queries")
    parser.add_argument("--case", type=json.loads, help="one case, as a failure prints it")
    options = parser.parse_args()
    logging.getLogger("pyserini_compneg").setLevel(logging.ERROR)  # thousands of queries find nothing
    seed, counts, end = options.seed, Counter(), time.monotonic() + 60 * options.minutes
    while True:
        cases = draw_cases(seed)
        if options.case:
            cases = [{**options.case, "expression": tupled(options.case["expression"])}]
        for case, *_ in failures(cases, counts):
            small = shrunk(case)
            print(report(*next(failures([small]))))
            return 1
        seed += 1
        print(f"\rseed {seed}: {dict(counts)}", end="", file=sys.stderr, flush=True)
        if options.case or time.monotonic() > end or (options.queries and counts["compared"] >= options.queries):
            print(f"\n{counts['compared']} queries, 0 wrong", file=sys.stderr)
            return 0


if __name__ == "__main__":
    sys.exit(main())
