"""``python -m pyserini_compneg.reproduce.demo``."""

import sys

from pyserini_compneg.commands.demo import main

if __name__ == "__main__":
    sys.exit(main())
