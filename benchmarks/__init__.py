"""Measurements. Each figure stands beside its reference, taken in the same run, with the machine and versions."""
