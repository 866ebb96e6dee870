"""The tables of a program are private to ir/: others read by id, build and edit by its methods.

The compiler holds most of this, for fields are private; here is what it cannot know: that nobody
makes them public again, and that only the parser uses what is for the parser.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.contract.test_circles import code

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "rust" / "src"
IR = SOURCE / "ir"

# What a program consists of: structs whose fields only ir/ may see, or that only ir/ may name.
TABLES = ("program.rs", "Program"), ("printing.rs", "Printing")
ROWS = "Op", "Operand", "Value", "Block", "Region", "Function", "PortRange", "KindTable"
# Where methods stand that only the parser may call.
FOR_THE_PARSER = "from_text.rs", "rows.rs", "port.rs"


def struct(text: str, name: str) -> str:
    """What stands between the braces of a struct."""
    found = re.search(rf"struct {name}\b[^{{;]*\{{(.*?)\n\}}", text, re.DOTALL)
    assert found, f"no struct {name}"
    return found[1]


def test_tables_have_no_public_fields() -> None:
    for file, name in TABLES:
        body = struct(code(IR / file), name)
        fields = re.findall(r"^\s*(pub(?:\([^)]*\))?)?\s*(\w+):", body, re.MULTILINE)
        assert len(fields) > 10, name
        assert not [field for seen, field in fields if seen not in ("", "pub(super)")], name


def test_every_table_of_rows_is_in_these_structs() -> None:
    """No other public struct of ir/ has a public field that is a table."""
    for path in sorted(IR.rglob("*.rs")):
        for name in re.findall(r"^pub struct (\w+)", code(path), re.MULTILINE):
            body = re.search(rf"struct {name}\b[^{{;]*\{{(.*?)\n\}}", code(path), re.DOTALL)
            fields = re.findall(r"^\s*pub (\w+): (?:IdVec|Vec<Attr)", body[1] if body else "", re.M)
            assert not fields, f"{path.name}: {name}"


def test_rows_are_not_exported() -> None:
    exported = " ".join(re.findall(r"^pub use ([^;]*);", code(IR / "mod.rs"), re.MULTILINE))
    names = set(re.findall(r"\w+", exported))
    assert {"Program", "NewOp", "Printing"} <= names
    assert not names & set(ROWS)
    text = "\n".join(code(path) for path in sorted(IR.rglob("*.rs")))
    public = [row for row in ROWS if re.search(rf"^pub struct {row}\b", text, re.MULTILINE)]
    assert not public


def test_what_is_for_the_parser_is_used_by_it_alone() -> None:
    methods = {
        name
        for file in FOR_THE_PARSER
        for name in re.findall(r"^    pub\(crate\) fn (\w+)", code(IR / file), re.MULTILINE)
    }
    assert {"push_op", "push_operand", "set_op_text", "end_of_text"} <= methods
    wrong = {
        f"{path.relative_to(SOURCE)}: {name}"
        for path in sorted(SOURCE.rglob("*.rs"))
        if path.relative_to(SOURCE).parts[0] not in ("ir", "mlir") and "tests" not in path.name
        for name in methods & set(re.findall(r"\.(\w+)\(", code(path)))
    }
    assert not wrong
