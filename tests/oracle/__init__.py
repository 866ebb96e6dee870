"""The oracle: sharding propagation written from the definitions, simple and slow.

It uses lists, dicts and integers only: no bitsets, no interning, no caching, and nothing
imported from the package under test. `tests/shardy/test_oracle.py` compares it with the
reference.

From the bottom up:

    mesh        axes, sizes, device order
    axis        full axes and sub-axes, as ranges [pre-size, next pre-size) of an axis
    sharding    dim sharding, tensor sharding, as values that print as `sdy` text
    rule        op sharding rule
    text        parsing of all of the above
    verify      the invariants
    slices      local shapes, padding, the slice of each device, equivalence
    projection  dims to factors and back
    basic, aggressive   the two strategies of propagation along factors
    visit       propagation through one op
    graph       programs of ops, values, uses and regions
    state       the sharding of every value of a program
    driver      the worklist, which gives the order in which ops are visited
    schedule    op priorities and user priorities around the driver
"""
