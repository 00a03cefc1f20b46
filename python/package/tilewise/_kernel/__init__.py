"""Pallas kernels: their budgets from a trace, and blocks to try."""
