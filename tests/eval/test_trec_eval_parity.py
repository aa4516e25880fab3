"""The evaluator against the trec_eval that Anserini brings along, on random runs and judgements."""

import os
import platform
import random
import stat
import subprocess
import zipfile

import pytest

from pyserini_compneg.eval import evaluate, parse_measures, read_run
from pyserini_compneg.eval.measures import mean
from pyserini_compneg.eval.qrels import read_qrels
from pyserini_compneg.lucene.anserini import anserini_jar

MEASURES = ["ndcg_cut.3", "ndcg_cut.10", "recall.100", "map", "recip_rank", "P.10"]


@pytest.fixture(scope="module")
def trec_eval(tmp_path_factory):
    """The program of Anserini's jar. Where it does not run a test is skipped, but never in CI."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        (pytest.fail if "CI" in os.environ else pytest.skip)("trec_eval is run on Linux with x86_64 only")
    with zipfile.ZipFile(anserini_jar()) as jar:
        program = tmp_path_factory.mktemp("trec_eval") / "trec_eval.exe"
        program.write_bytes(jar.read("trec_eval/trec_eval-linux-amd64"))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program


def reported(trec_eval, qrels, run):
    """``{(qid, measure): what trec_eval prints}``, with ``all`` for the means."""
    wanted = ["-m", "ndcg_cut.3,10", *(flag for name in MEASURES[2:] for flag in ("-m", name))]
    command = [trec_eval, "-c", "-q", *wanted, qrels, run]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = (line.split() for line in output.splitlines())
    printed = {name.replace(".", "_"): name for name in MEASURES}
    return {(qid, printed[name]): value for name, qid, value in rows}


def random_docid(rng):
    alphabet = rng.choice(["ab", "0123456789", "aAzZ_-.:/~", "éß漢🎬"])
    return "".join(rng.choices(alphabet, k=rng.choice([1, 2, 3, 40, 400])))


def random_score(rng):
    """Scores that tie, that tie at 32 bits only, that are huge, tiny or below 0."""
    kinds = (
        lambda: rng.randint(-2, 2),
        lambda: 1 + rng.randint(-20, 20) * 1e-9,
        lambda: 16_777_216 + rng.randint(0, 4),
        lambda: rng.uniform(-1, 1) * 10.0 ** rng.randint(-50, 36),
        lambda: rng.gauss(0, 10),
    )
    return rng.choice(kinds)()


def write_random_case(rng, folder):
    """A run whose lines and ranks are in no order, for some of the judged queries and for others.

    Each query has a judgement from 0 on, without which trec_eval may crash.
    """
    docids = list(dict.fromkeys(random_docid(rng) for _ in range(rng.choice([3, 20, 300]))))
    qids = [str(number) for number in rng.sample(range(100), 8)]
    grades = rng.choice([[0, 1], [1], [-2, -1, 0, 1], [0, 1, 2, 3, 7], [-1, 0]])
    judged = {
        (qid, docid): rng.choice(grades)
        for qid in qids[:6]
        for docid in rng.sample(docids, rng.randint(1, min(30, len(docids))))
    }
    judged |= {(qid, rng.choice(docids)): grades[-1] for qid in qids[:6]}
    ranked = [(qid, docid) for qid in qids[rng.randint(1, 4) :] for docid in docids if rng.random() < 0.8]
    rng.shuffle(ranked)
    qrels, run = folder / "qrels.txt", folder / "run.txt"
    qrels.write_text("".join(f"{qid} 0 {docid} {grade}\n" for (qid, docid), grade in judged.items()), encoding="utf-8")
    lines = [f"{qid} Q0 {docid} {rng.randint(0, 99)} {random_score(rng)!r} tag\n" for qid, docid in ranked]
    run.write_text("".join(lines), encoding="utf-8")
    return qrels, run


@pytest.mark.parametrize("seed", range(100))
def test_prints_what_trec_eval_prints(trec_eval, tmp_path, seed):
    qrels_path, run_path = write_random_case(random.Random(seed), tmp_path)
    theirs = reported(trec_eval, qrels_path, run_path)
    qrels, measures = read_qrels(qrels_path), parse_measures(MEASURES)
    ours = evaluate(qrels, read_run(run_path), measures)
    assert {key: f"{ours[key[0]][key[1]]:.4f}" for key in theirs if key[0] != "all"} == {
        key: value for key, value in theirs.items() if key[0] != "all"
    }
    assert {measure.name: f"{mean(ours, measure, list(qrels)):.4f}" for measure in measures} == {
        name: theirs["all", name] for name in MEASURES
    }
