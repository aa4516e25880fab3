"""``python -m pyserini_compneg.export``: makes the ONNX form of a model before it is needed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from pyserini_compneg.cli import run_main
from pyserini_compneg.models import PRECISIONS, Head

_EXAMPLE = """example:
  python -m pyserini_compneg.export --encoder naver/splade-v3 --precision fp32 int8

A model is exported by itself when it is first used; this command does it beforehand, for instance where there is a
network. Exports are compared with torch on sample texts, refused if they differ, and kept in the user's cache
(COMPNEG_CACHE), by the hash of the checkpoint's content. The folder of each is printed.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    return run_main(_main, argv)


def _main(argv: Sequence[str] | None) -> None:
    args = _parser().parse_args(argv)
    from pyserini_compneg.export import export_model
    from pyserini_compneg.export.exporting import read_report
    from pyserini_compneg.models import NeuralSide, model_folder, read_checkpoint

    checkpoint = read_checkpoint(model_folder(args.encoder), args.encoder, Head.parse(args.head) if args.head else None)
    sides = [side for side in dict.fromkeys([checkpoint.document, checkpoint.query]) if isinstance(side, NeuralSide)]
    for side in sides:
        for precision in args.precision:
            folder = export_model(side, precision, fresh=args.overwrite)
            report = read_report(folder)
            print(
                f"{precision}: largest difference {report['largest_difference']:.1e}, "
                f"mean cosine {report['mean_cosine']:.4f}, {report['bytes'] / 1e6:.0f} MB",
                file=sys.stderr,
            )
            print(folder)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m pyserini_compneg.export",
        description="Exports a sparse model to ONNX, pooling included, and checks it against torch.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--encoder", required=True, metavar="MODEL", help="a folder, or a name of the Hugging Face hub")
    parser.add_argument(
        "--precision",
        nargs="+",
        choices=PRECISIONS,
        default=["fp32"],
        help="fp32 (default), int8 for processors, fp16 for GPUs",
    )
    parser.add_argument(
        "--head", metavar="ACTIVATION:POOLING[:EPSILON]", help="instead of what the model says, see the search command"
    )
    parser.add_argument("--overwrite", action="store_true", help="export again what was exported before")
    return parser


if __name__ == "__main__":
    sys.exit(main())
