"""``python -m pyserini_compneg.eval``."""

from pyserini_compneg.commands.eval import main

if __name__ == "__main__":
    raise SystemExit(main())
