"""``python -m pyserini_compneg.doc``."""

from pyserini_compneg.commands.doc import main

if __name__ == "__main__":
    raise SystemExit(main())
