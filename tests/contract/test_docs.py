"""The examples in README and docs run, and print what stands below them."""

import contextlib
import doctest
import importlib.util
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLE = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", re.DOTALL)
EXAMPLES = [
    pytest.param(code, output, id=f"{page.name}-{number}")
    for page in PAGES
    for number, (code, output) in enumerate(EXAMPLE.findall(page.read_text(encoding="utf-8")))
    # jax needs Python 3.11.
    if "import jax" not in code or importlib.util.find_spec("jax")
]


@pytest.mark.parametrize(("code", "output"), EXAMPLES)
def test_example_prints_what_stands_below_it(code, output):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "example.py", "exec"), {"__name__": "example"})
    assert printed.getvalue() == output


def test_stub_examples_run():
    import shardcore

    stub = (ROOT / "python" / "shardcore" / "_core.pyi").read_text(encoding="utf-8")
    names = {name: getattr(shardcore, name) for name in shardcore.__all__}
    names["shardcore"] = shardcore
    failures = attempts = 0
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner()
    for docstring in re.findall(r'"""(.*?)"""', stub, re.DOTALL):
        test = parser.get_doctest(docstring, dict(names), "_core.pyi", "_core.pyi", 0)
        failed, attempted = runner.run(test)
        failures, attempts = failures + failed, attempts + attempted
    assert attempts > 0
    assert failures == 0
