"""The slow oracle: sharding propagation written from the definitions.

Lists, dicts and whole numbers only: no bitsets, no interning, no caching, and nothing
imported from the package under test. It is meant to be so simple that it is unlikely to
be wrong, and `tests/shardy/test_oracle.py` compares it with the reference anyway.

From the bottom up:

    mesh        axes, sizes, device order
    axis        full axes and sub-axes, as stretches [pre-size, next pre-size) of an axis
    sharding    dim sharding, tensor sharding, as values that print as `sdy` text
    rule        op sharding rule
    text        parsing of all of the above
    verify      the invariants
    slices      local shapes, padding, which device holds which slice, equivalence
    projection  dims to factors and back
    basic, aggressive   the two ways to propagate along factors
    visit       one op
    graph       programs of ops, values, uses and regions
    state       which sharding every value of a program has
    driver      the worklist: in which order ops are visited
    schedule    op priorities and user priorities around it
"""
