"""Searches for the largest sizes and the combinations of settings that a TPU has memory for.

`run` is `tw.fit`; `search` decides which sizes are asked about, and knows no compiler; `combination` asks, through
`tilewise._compiler`, which keeps the answers; `factory` makes the programs, and `result` is returned. `advice` applies
a report's advice, and asks likewise.
"""
