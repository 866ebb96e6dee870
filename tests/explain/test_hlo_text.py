"""Text of compiled modules: what is read, and what is said of text that is none."""

from __future__ import annotations

import time

import pytest
from shardcore import ParseError
from shardcore.explain.collectives import collectives
from shardcore.explain.compiled import expanded
from shardcore.explain.device_groups import groups_of, joined, pairs_of
from shardcore.explain.hlo_text import read

MODULE = """\
HloModule jit_f, is_scheduled=true, num_partitions=4

FileNames
1 "/a/model.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=9 end_line=9 column=4 end_column=4}
2 {file_name_id=1 function_name_id=1 line=3 end_line=3 column=8 end_column=8}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b)
}

%body (p: (s32[], f32[8,4])) -> (s32[], f32[8,4]) {
  %p = (s32[], f32[8,4]{1,0:T(8,128)S(1)}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %x = f32[8,4]{1,0:T(8,128)S(1)} get-tuple-element(%p), index=1
  %start = ((f32[8,4]{1,0}), f32[32,4]{1,0}) all-gather-start(%x), channel_id=1, GATHER
  %done = f32[32,4]{1,0} all-gather-done(%start)
  %cut = f32[8,4]{1,0} slice(%done), slice={[0:8], [0:4]}
  ROOT %t = (s32[], /*index=1*/f32[8,4]{1,0}) tuple(%i, %cut)
}

%condition (p.1: (s32[], f32[8,4])) -> pred[] {
  %p.1 = (s32[], f32[8,4]) parameter(0)
  %i.1 = s32[] get-tuple-element(%p.1), index=0
  %n = s32[] constant(5)
  ROOT %less = pred[] compare(%i.1, %n), direction=LT
}

ENTRY %main (x.1: f32[8,4], y: f32[16]) -> (f32[8,4], f32[16], f32[8,4]) {
  %x.1 = f32[8,4]{1,0} parameter(0), metadata={op_name="params['w']"}
  %y = f32[16]{0} parameter(1), metadata={op_name="y"}
  %zero = s32[] constant(0)
  %init = (s32[], f32[8,4]) tuple(%zero, %x.1)
  %loop = (s32[], f32[8,4]) while(%init), condition=%condition, body=%body
  %w = f32[8,4] get-tuple-element(%loop), index=1
  %both = (f32[8,4], f32[16]) all-reduce(%w, %y), SUM
  %r0 = f32[8,4] get-tuple-element(%both), index=0
  %r1 = f32[16] get-tuple-element(%both), index=1
  %moved = f32[8,4] collective-permute(%r0), PERMUTE
  ROOT %out = (f32[8,4], f32[16], f32[8,4]) tuple(%r0, %r1, %moved)
}
"""
ATTRIBUTES = {
    "GATHER": "replica_groups=[1,4]<=[4], dimensions={0}, "
    'metadata={op_name="jit(f)/while/body/dot_general" stack_frame_id=2}',
    "SUM": "channel_id=2, replica_groups={{0,1},{2,3}}, to_apply=%add, "
    'metadata={op_name="jit(f)/(mlp/reduce_sum:dot_general)" stack_frame_id=1}',
    "PERMUTE": "channel_id=3, source_target_pairs={{0,0},{1,2},{2,1},{3,3}}, "
    'metadata={op_name="jit(f)/roll" source_file="/a/model.py" source_line=7}',
}
for name, text in ATTRIBUTES.items():
    MODULE = MODULE.replace(name, text)


def test_collectives_with_their_runs_parts_and_places() -> None:
    [module] = read(MODULE)
    assert (module.name, module.num_devices, module.entry) == ("jit_f", 4, "main")
    gather, both, moved = collectives(module)
    assert (gather.name, gather.kind, gather.runs, gather.is_async) == (
        "%start",
        "all_gather",
        5,
        True,
    )
    assert gather.groups == ((0, 1, 2, 3),)
    assert gather.names == ("start", "done")
    [part] = gather.parts
    assert (part.elements, part.dtype, part.bytes, part.sources) == (128, "f32", 512, 1)
    own = part.origins[0]
    assert (own.op_name, own.location) == ("jit(f)/while/body/dot_general", "/a/model.py:3:8")
    assert module.stack(module.computations["body"].instructions["start"]) == (
        "/a/model.py:3:8",
        "/a/model.py:9:4",
    )
    assert [(part.operand, part.sources, part.targets) for part in both.parts] == [
        ("%w", 1, 0b101),
        ("%y", 2, 2),
    ]
    assert both.groups == ((0, 1), (2, 3))
    assert [one.op_name for one in both.parts[0].origins[:2]] == [
        "jit(f)/mlp/reduce_sum",
        "jit(f)/dot_general",
    ]
    assert (moved.kind, moved.groups) == ("collective_permute", ((1, 2),))
    assert moved.parts[0].origins[0].location == "/a/model.py:7"


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("replica_groups={{0,2},{1,3}}, a={}", ((0, 2), (1, 3))),
        ("replica_groups={}, a={}", ((0, 1, 2, 3, 4, 5, 6, 7),)),
        ("replica_groups=[4,2]<=[2,4]T(1,0), a", ((0, 4), (1, 5), (2, 6), (3, 7))),
        ("replica_groups=[2,4]<=[8]", ((0, 1, 2, 3), (4, 5, 6, 7))),
        ("replica_groups=mesh['x'=2,'y'=4] {'y'}, a", ((0, 1, 2, 3), (4, 5, 6, 7))),
        ("replica_groups=mesh['x'=8] {'x':(2)2}, a", ((0, 2), (1, 3), (4, 6), (5, 7))),
        (
            "replica_groups=mesh['x'=8] {'x':(1)2,'x':(4)2}, a",
            ((0, 1, 4, 5), (2, 3, 6, 7)),
        ),
        (
            "replica_groups=mesh['a'=4,'b'=1,'c'=2], device_ids=([2,4]T(1,0)) {'a'}, a",
            ((0, 1, 2, 3), (4, 5, 6, 7)),
        ),
        ("channel_id=1", ((0, 1, 2, 3, 4, 5, 6, 7),)),
        # More devices than there are: nothing is known of their groups.
        ("replica_groups=[1,99999999999]<=[99999999999]", ()),
        ("replica_groups=mesh['x'=99999999999] {'x'}, a", ()),
        ("replica_groups=mesh['x'=8], device_ids=([2]) {'x'}, a", ()),
        ("replica_groups=[0,0]<=[0]", ()),
    ],
)
def test_groups_in_each_notation(text: str, groups: object) -> None:
    assert groups_of(f", {text}", 8) == groups


def test_pairs_join_devices_to_groups() -> None:
    pairs = pairs_of(", source_target_pairs={{0,1},{1,2},{2,0},{4,5},{3,3}}, a")
    assert joined(pairs) == ((0, 1, 2), (4, 5))


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("jit(f)/jvp()/mul", ("jit(f)/jvp()/mul",)),
        ("jit(f)/(a(b)/c:d/e)", ("jit(f)/a(b)/c", "jit(f)/d/e")),
        ("jit(f)/jvp()/(gather:mul)", ("jit(f)/jvp()/gather", "jit(f)/jvp()/mul")),
        ("(a:b)/c", ("a/c", "b/c")),
        ("a/b;a/c", ("a/b", "a/c")),
        ("a/(b)", ("a/(b)",)),
        ("", ("",)),
    ],
)
def test_joined_names(name: str, names: tuple[str, ...]) -> None:
    assert expanded(name) == names


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", (1, 1), "expected HloModule: the text is empty"),
        ("module {}", (1, 1), "expected HloModule: this is no text of HLO"),
        (MODULE[: MODULE.index("  %done")], (27, 192), "ends within the computation body"),
        (
            MODULE[: MODULE.index("{{0,1},{2,3}}") - 40],
            (47, 40),
            "ends within the computation main",
        ),
        (MODULE[: MODULE.index("ENTRY")], (39, 1), "no ENTRY computation"),
        (MODULE.replace("  %zero = s32[] ", "  zero: "), (43, 3), "expected an instruction"),
        (MODULE.replace("StackFrames", "Frames !"), (13, 1), "expected a computation"),
    ],
)
def test_what_is_wrong_and_where(text: str, place: tuple[int, int], message: str) -> None:
    with pytest.raises(ParseError, match=message) as caught:
        read(text, "dump.txt")
    assert (caught.value.code, caught.value.diagnostics[0].filename) == ("syntax", "dump.txt")
    assert (caught.value.line, caught.value.column) == place
    assert caught.value.hint


def test_a_long_dump_is_read_in_seconds() -> None:
    lines = [
        f'  %r{at} = f32[8]{{0}} add(%r{at - 1}, %y), metadata={{op_name="jit(f)/add"}}'
        for at in range(1, 100_000)
    ]
    text = "\n".join(
        [
            "HloModule m, num_partitions=4",
            "ENTRY %main (r0: f32[8], y: f32[8]) -> f32[8] {",
            "  %r0 = f32[8]{0} parameter(0)",
            "  %y = f32[8]{0} parameter(1)",
            *lines,
            "  ROOT %sum = f32[8]{0} all-reduce(%r99999), replica_groups=[1,4]<=[4]",
            "}",
        ]
    )
    start = time.process_time()
    [module] = read(text)
    [row] = collectives(module)
    assert time.process_time() - start < 5
    assert (row.parts[0].sources, module.num_instructions) == (3, 100_002)
