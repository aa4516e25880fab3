"""``python -m pyserini_compneg.compose``."""

import sys

from pyserini_compneg.commands.compose import main

if __name__ == "__main__":
    sys.exit(main())
