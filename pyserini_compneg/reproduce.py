"""``python -m pyserini_compneg.reproduce``."""

from pyserini_compneg.commands.reproduce import main

if __name__ == "__main__":
    raise SystemExit(main())
