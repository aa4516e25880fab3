"""``python -m pyserini_compneg.datasets``."""

import sys

from pyserini_compneg.commands.datasets import main

if __name__ == "__main__":
    sys.exit(main())
