"""``python -m pyserini_compneg``."""

import sys

from pyserini_compneg.commands.main import main

if __name__ == "__main__":
    sys.exit(main())
