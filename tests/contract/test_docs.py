"""The examples and commands in README and docs run, and print what stands below them."""

import doctest
import importlib.util
import re

import pytest
from shardcore.shardy import default_shardy

from tests.contract import printed
from tests.deep import deep

LONG = ("plan.md",)
"""Pages whose commands take a minute or more."""
HAS_JAX = importlib.util.find_spec("jax") is not None
TEXTS = {page: page.read_text(encoding="utf-8") for page in printed.PAGES}
EXAMPLES = [
    pytest.param(code, output, id=f"{page.name}-{number}")
    for page, text in TEXTS.items()
    for number, (code, output) in enumerate(printed.EXAMPLE.findall(text))
    if HAS_JAX or "import jax" not in code
]
CONSOLES = [
    pytest.param(text, id=page.name, marks=[deep] if page.name in LONG else [])
    for page, text in TEXTS.items()
    if printed.CONSOLE.search(text)
]


@pytest.mark.parametrize(("code", "output"), EXAMPLES)
def test_example_prints_what_stands_below_it(code, output):
    assert printed.output_of_code(code) == output


@pytest.mark.skipif(not HAS_JAX, reason="jax needs Python 3.11")
@pytest.mark.skipif(
    default_shardy() != "0.10", reason="the pages show programs as JAX 0.10 lowers them"
)
@pytest.mark.parametrize("text", CONSOLES)
def test_commands_print_what_stands_below_them(text):
    assert printed.consoles(text) == text


def test_stub_examples_run():
    import shardcore

    stub = (printed.ROOT / "python" / "shardcore" / "_core.pyi").read_text(encoding="utf-8")
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
