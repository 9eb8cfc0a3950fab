"""The peers' programs: each is run by the Python of its own environment, in this folder."""
