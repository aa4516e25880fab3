"""``python -m pyserini_compneg.train``."""

from pyserini_compneg.commands.train import main

if __name__ == "__main__":
    raise SystemExit(main())
