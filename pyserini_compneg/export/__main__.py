"""``python -m pyserini_compneg.export``."""

import sys

from pyserini_compneg.commands.export import main

if __name__ == "__main__":
    sys.exit(main())
