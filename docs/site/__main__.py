"""``python -m docs.site [FOLDER]`` builds the site into a folder, build/site unless one is given.

Nothing is fetched, and a warning of whatever kind is a failure: exit status 1, and what was wrong.
"""

from __future__ import annotations

import sys
from pathlib import Path

from docs.site.build import ROOT, SiteError, build


def main() -> None:
    """Build it and say where it is."""
    if len(sys.argv) > 2 or any(word.startswith("-") for word in sys.argv[1:]):
        sys.exit("usage: python -m docs.site [FOLDER]")
    folder = Path(sys.argv[1]).resolve() if len(sys.argv) == 2 else ROOT / "build" / "site"
    try:
        start = build(folder)
    except SiteError as error:
        sys.exit(str(error))
    print(f"The site is built. Open {start}")
    print(f"(A browser searches it where it is served: python -m http.server --bind 127.0.0.1 --directory {folder})")


if __name__ == "__main__":
    main()
