"""``python -m pyserini_compneg.export``."""

from pyserini_compneg.commands.export import main

if __name__ == "__main__":
    raise SystemExit(main())
