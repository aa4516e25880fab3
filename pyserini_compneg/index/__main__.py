"""``python -m pyserini_compneg.index``."""

import sys

from pyserini_compneg.commands.index import main

if __name__ == "__main__":
    sys.exit(main())
