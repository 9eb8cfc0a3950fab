"""Checks of schedule stores: each function is one sentence."""
