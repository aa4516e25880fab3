"""``python -m pyserini_compneg.train``."""

import sys

from pyserini_compneg.commands.train import main

if __name__ == "__main__":
    sys.exit(main())
