"""``python -m pyserini_compneg.explain``."""

from pyserini_compneg.commands.explain import main

if __name__ == "__main__":
    raise SystemExit(main())
