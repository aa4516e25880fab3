"""What an experiment found, for people to read: a page, Markdown, tables for a paper, plots."""

from pyserini_compneg.reproduce.report.writing import check_packages, write_report

__all__ = ["check_packages", "write_report"]
