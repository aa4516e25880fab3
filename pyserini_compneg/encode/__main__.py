"""``python -m pyserini_compneg.encode``."""

import sys

from pyserini_compneg.commands.encode import main

if __name__ == "__main__":
    sys.exit(main())
