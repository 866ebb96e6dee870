"""Random modules for comparing with the reference: every op with a rule, every feature of `sdy`.

`programs.make(seed)` is the text of one module, the same for the same seed. `coverage` counts what
the modules hit; `compare` runs them through both engines and `shrink` makes what differs small.

    python -m tests.shardy.generator --start 0 --count 1000

compares in bulk.
"""
