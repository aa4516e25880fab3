"""``python -m pyserini_compneg.compose``."""

from pyserini_compneg.commands.compose import main

if __name__ == "__main__":
    raise SystemExit(main())
