"""``python -m pyserini_compneg.explain``."""

import sys

from pyserini_compneg.commands.explain import main

if __name__ == "__main__":
    sys.exit(main())
