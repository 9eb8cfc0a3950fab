"""Fakes, and one conformance suite a protocol, for people who write their own stores and runtimes."""

from concorde_trio.testing.signal_store import check_signal_store, signal_store_checks

__all__ = ["check_signal_store", "signal_store_checks"]
