"""``python -m pyserini_compneg.serve``."""

from pyserini_compneg.commands.serve import main

if __name__ == "__main__":
    raise SystemExit(main())
