"""``python -m pyserini_compneg.lucene``."""

import sys

from pyserini_compneg.commands.lucene import main

if __name__ == "__main__":
    sys.exit(main())
