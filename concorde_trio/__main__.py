"""``python -m concorde_trio`` is the command ``concorde-trio``."""

import sys

from concorde_trio.cli import main

if __name__ == "__main__":
    sys.exit(main())
