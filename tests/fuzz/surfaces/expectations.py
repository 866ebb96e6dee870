"""Target: files of expectations for `check`, with and without `--update`."""

from __future__ import annotations

import functools
from pathlib import Path
from random import Random

from shardcore import Module, Result

from tests.fuzz.surfaces import hostile, outcome
from tests.fuzz.surfaces.arguments import PROGRAM

EXPECTATIONS = """\
[shardings]
"%x" = '[{"x"}, {"y"}]'
"%0" = 'P("x", None)'
"result 0" = "[{?}, {?}]"
[mesh]
x = 2
[shapes]
"%x" = [8, 16]
[constraints]
"m/x: f32[8,16]" = ["P('x')"]
[collectives]
forbid = ["all_gather"]
all_reduce = 1
[memory]
hardware = "tpu-v5p"
max_bytes = "1GiB"
[replicated]
max_bytes = 100
allow = ["%w", "params/**"]
"""
GOLDEN = """\
{".params/['w']": {"mesh": {"shape": {"x": 2, "y": 1}}, "partition_spec": [["x", "y"], null],
  "shape": [8, 16]},
 ".step": {"partition_spec": [], "shape": []}}
"""
ACTIVATIONS = """\
{"Activation Sharding Dump": [{"m/x: float32[8,16]": {"PartitionSpec": "P('x', None)"}}]}
"""


@functools.cache
def _result() -> Result:
    return Module.parse(PROGRAM).propagate()


def run(seed: int) -> None:
    """Checks the file of `seed`; one that is updated holds from then on."""
    random = Random(f"expectations {seed}")
    given = random.choice([EXPECTATIONS, EXPECTATIONS, GOLDEN, ACTIVATIONS])
    is_toml = given is EXPECTATIONS
    lines = given.splitlines(keepends=True)
    if is_toml:
        random.shuffle(lines[1:4])
    text = "".join(line for line in lines if not is_toml or random.random() < 0.9)
    while random.random() < 0.6:
        at = random.randrange(len(text) + 1)
        text = text[:at] + hostile.mutated(random, text[at : at + 40]) + text[at + 40 :]
    path = Path("expected.toml" if is_toml else "golden.json")
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    update = random.random() < 0.5
    report = outcome.of_call(lambda: _result().check(path, update=update))
    if report is not None:
        str(report)
    if report is None:
        assert path.read_bytes() == text.encode("utf-8", "surrogatepass"), "a failed update wrote"
    elif update and is_toml:
        again = _result().check(path)
        assert again.ok or not report.ok, f"{again}"
