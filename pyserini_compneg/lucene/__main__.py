"""``python -m pyserini_compneg.lucene``."""

from pyserini_compneg.commands.lucene import main

if __name__ == "__main__":
    raise SystemExit(main())
