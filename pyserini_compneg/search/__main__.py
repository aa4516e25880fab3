"""``python -m pyserini_compneg.search``."""

from pyserini_compneg.commands.search import main

if __name__ == "__main__":
    raise SystemExit(main())
