"""``compneg export``: makes the ONNX form of a model before it is needed."""

from __future__ import annotations

import argparse
from pathlib import Path

from pyserini_compneg.commands import flags
from pyserini_compneg.commands.running import command, say
from pyserini_compneg.encode.models import PRECISIONS, Head, ModelOptions
from pyserini_compneg.support.errors import EncodingError
from pyserini_compneg.support.options import add_flags

_EPILOG = """\
The first use of a model exports it. This command does it earlier, for example while there is a network. An export is
compared with torch on sample texts, and refused if it differs. Exports are kept in the user's cache (COMPNEG_CACHE),
under the hash of the checkpoint's content. The folder of each export is printed.

example:
  compneg export --encoder naver/splade-v3 --precision fp32 int8
  compneg export --encoder models/mine --precision int8 --output models/mine-int8
"""


def _run(args: argparse.Namespace, _: argparse.ArgumentParser) -> None:
    from pyserini_compneg.encode.export import export_model, read_report, save_exported
    from pyserini_compneg.encode.models import NeuralSide, model_folder, read_checkpoint
    from pyserini_compneg.encode.neural import checkpoint_hash

    if args.output and (len(args.precision) > 1 or args.head):
        raise EncodingError("--output takes one --precision, and the checkpoint's own head; leave out the others")
    source = model_folder(args.encoder)
    checkpoint = read_checkpoint(source, args.encoder, Head.parse(args.head) if args.head else None)
    checkpoint_hash(checkpoint)  # refuses a model that cannot index
    if args.output:
        save_exported(checkpoint, source, args.precision[0], args.output, args.overwrite)
    sides = [side for side in dict.fromkeys([checkpoint.document, checkpoint.query]) if isinstance(side, NeuralSide)]
    for side in sides:
        for precision in args.precision:
            folder = export_model(side, precision, fresh=args.overwrite and not args.output)
            report = read_report(folder)
            say(
                f"{precision}: largest difference {report['largest_difference']:.1e}, "
                f"mean cosine {report['mean_cosine']:.4f}, {report['bytes'] / 1e6:.0f} MB"
            )
            print(folder)
    if args.output:
        print(args.output)


def _parser() -> argparse.ArgumentParser:
    parser = flags.command_parser(
        "export",
        "--encoder MODEL",
        "Exports a sparse model to ONNX, pooling included, and checks it against torch.",
        _EPILOG,
    )
    parser.add_argument("--encoder", required=True, metavar="MODEL", help=flags.MODEL)
    text = "fp32 (default), int8 for processors, fp16 for GPUs"
    parser.add_argument("--precision", nargs="+", choices=PRECISIONS, default=["fp32"], help=text)
    text = "also write a folder like the model's, with the export in place of its weights; it needs no torch"
    parser.add_argument("--output", type=Path, metavar="DIR", help=text)
    group = flags.advanced(parser)
    add_flags(group, ModelOptions, {"head"})
    group.add_argument("--overwrite", action="store_true", help="replace an earlier export, and DIR if it is one")
    return parser


main = command(_parser, _run)
