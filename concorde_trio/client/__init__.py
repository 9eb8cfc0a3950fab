"""The agent server asked from Python, on Trio: ``concorde_trio.Client`` (SRV-2, SRV-3).

The law: it knows the server by what the server says to everybody, its routes and documents, and nothing of its insides.
"""
