"""``python -m pyserini_compneg.update``."""

from pyserini_compneg.commands.update import main

if __name__ == "__main__":
    raise SystemExit(main())
