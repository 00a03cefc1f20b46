"""Errors, types, results and progress, which the other folders share."""
