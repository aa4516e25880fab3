"""The figures of incidents: of the searches before, over and after them."""

import math
import statistics
from collections import defaultdict

COLUMNS = ["quiet", "p50", "p99", "over", "p50", "p99", "longest", "after", "p50", "longest", "wrong", "errors"]
HEADER = f"{'incident':<20}" + "".join(f"{name:>9}" for name in COLUMNS)
SHARES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999, "longest": 1}


def percentile(durations, share):
    """In milliseconds; NaN if there are none."""
    ordered = sorted(durations)
    return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else math.nan


def row(searches, begun, ended):
    """The figures of an incident: of the searches before it, of those that overlap it, and of those after it."""
    parts = {
        "quiet": [end - start for start, end, *_ in searches if end <= begun],
        "over": [end - start for start, end, *_ in searches if end > begun and start <= ended],
        "after": [end - start for start, end, *_ in searches if start > ended],
    }
    quiet, over, after = parts.values()
    return [
        *(len(quiet), percentile(quiet, 0.5), percentile(quiet, 0.99)),
        *(len(over), percentile(over, 0.5), percentile(over, 0.99), percentile(over, 1)),
        *(len(after), percentile(after, 0.5), percentile(after, 1)),
        *(sum(bool(search[which]) for search in searches) for which in (2, 3)),
    ]


def medians(rows):
    """For each incident of some rows, their number, the medians of their milliseconds, and the longest search."""
    kinds = defaultdict(list)
    for name, figures in rows:
        kinds[name].append(figures)
    for name, found in sorted(kinds.items()):
        quiet, quiet99, over, over99 = (statistics.median(one[column] for one in found) for column in (1, 2, 4, 5))
        longest = max(one[6] for one in found)
        yield (
            f"{name}: {len(found)} times, medians of p50 and p99: quiet {quiet:.0f}, {quiet99:.0f}, over {over:.0f}, "
            f"{over99:.0f} ms ({over99 / quiet99:.1f} times); longest {longest:.0f} ms"
        )
