#!/usr/bin/env python3
"""Retrieval with pyserini_compneg on the embeddings of a dataset of lsr-benchmark."""

from pathlib import Path
from tempfile import TemporaryDirectory

import click
import ir_datasets
import lsr_benchmark
from compneg_retrieval import build_index, search, write_rankings
from lsr_benchmark.click import retrieve_command
from tirex_tracker import ExportFormat, register_metadata, tracking

from pyserini_compneg import CompNegError


@retrieve_command()
@click.option(
    "--scale",
    type=click.FloatRange(min=0, min_open=True),
    default=100,
    show_default=True,
    help="Impact of a token in a document = round(weight * scale). Query weights are not rounded.",
)
@click.option(
    "--reorder/--no-reorder",
    default=True,
    show_default=True,
    help="Put similar documents beside each other: indexing takes longer, search is faster, results are the same.",
)
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Queries searched at once. Indexing uses all processors.",
)
def main(dataset, embedding, output, k, scale, reorder, threads):
    """Indexes the document embeddings of DATASET, and writes the K best documents of each query to OUTPUT."""
    if k < 1:
        raise click.BadParameter(f"must be at least 1, got {k}", param_hint="--k")
    output.mkdir(parents=True, exist_ok=True)
    lsr_benchmark.register_to_ir_datasets(dataset)
    ir_dataset = ir_datasets.load(f"lsr-benchmark/{dataset}")
    tag = f"pyserini-compneg-{Path(embedding).name}-{scale:g}-{k}"
    register_metadata({"actor": {"team": "reneuir-baselines"}, "tag": tag})
    documents = ir_dataset.doc_embeddings(model_name=embedding)
    queries = ir_dataset.query_embeddings(model_name=embedding)
    try:
        with TemporaryDirectory() as folder:
            index = Path(folder) / "index"
            with tracking(export_file_path=output / "index-metadata.yml", export_format=ExportFormat.IR_METADATA):
                build_index(index, embedding, documents, scale, reorder)
            with tracking(export_file_path=output / "retrieval-metadata.yml", export_format=ExportFormat.IR_METADATA):
                rankings = search(index, queries, k, threads)
        write_rankings(output / "run.txt.gz", [qid for qid, _, _ in queries], rankings, tag)
    except CompNegError as error:
        raise click.UsageError(str(error)) from None


if __name__ == "__main__":
    main()
