"""``python -m pyserini_compneg.index``."""

from pyserini_compneg.commands.index import main

if __name__ == "__main__":
    raise SystemExit(main())
