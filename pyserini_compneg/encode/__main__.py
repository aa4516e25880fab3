"""``python -m pyserini_compneg.encode``."""

from pyserini_compneg.commands.encode import main

if __name__ == "__main__":
    raise SystemExit(main())
