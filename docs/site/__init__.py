"""The documentation as a site: what becomes of the pages on the way, and the reference that is made of docstrings."""
