"""``python -m pyserini_compneg.search``."""

import sys

from pyserini_compneg.commands.search import main

if __name__ == "__main__":
    sys.exit(main())
