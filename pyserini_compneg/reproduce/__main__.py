"""``python -m pyserini_compneg.reproduce``."""

import sys

from pyserini_compneg.commands.reproduce import main

if __name__ == "__main__":
    sys.exit(main())
