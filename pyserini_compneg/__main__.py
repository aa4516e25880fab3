"""``python -m pyserini_compneg``."""

from pyserini_compneg.commands.main import main

if __name__ == "__main__":
    raise SystemExit(main())
