"""``python -m pyserini_compneg.eval``."""

import sys

from pyserini_compneg.commands.eval import main

if __name__ == "__main__":
    sys.exit(main())
