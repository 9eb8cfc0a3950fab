"""Signals in, runs out: handlers, the protocols of store and runtime, and the worker between them."""
