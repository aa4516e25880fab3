"""``python -m pyserini_compneg.read``."""

from pyserini_compneg.commands.read import main

if __name__ == "__main__":
    raise SystemExit(main())
