"""``python -m pyserini_compneg.datasets``."""

from pyserini_compneg.commands.datasets import main

if __name__ == "__main__":
    raise SystemExit(main())
