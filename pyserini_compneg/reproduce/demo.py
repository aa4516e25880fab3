"""``python -m pyserini_compneg.reproduce.demo``."""

from pyserini_compneg.commands.demo import main

if __name__ == "__main__":
    raise SystemExit(main())
