"""What fits: the largest sizes and the combinations of settings that a TPU has memory for.

`run` is `tw.fit`; `search` decides which sizes are asked about, and knows no compiler; `combination` asks, through
`tilewise._compiler`; `cache` keeps what was said, `factory` makes the programs, and `result` is what is returned.
"""
