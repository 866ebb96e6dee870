"""The page in Chromium: what a person clicks, types and prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import shardcore
from shardcore import Module

from tests.page.browser import Browser
from tests.page.test_page import EXAMPLES, TWO
from tests.unit.test_scopes import TEXT as SCOPED

GPT = EXAMPLES / "gpt_step.mlir"


@pytest.fixture(scope="module")
def gpt_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "gpt.html"
    Module.from_file(GPT).propagate().report(path, "tpu-v5p")
    return path


@pytest.fixture
def gpt(browser: Browser, gpt_page: Path) -> Browser:
    browser.open(gpt_page)
    return browser


def texts(browser: Browser, selector: str) -> list[str]:
    found: list[str] = browser.run(
        f"[...document.querySelectorAll({json.dumps(selector)})].map((one) => one.textContent)"
    )
    return found


def search(browser: Browser, words: str) -> None:
    browser.press("/")
    browser.type(words)


def test_nothing_is_asked_for_and_nothing_goes_wrong(gpt: Browser, gpt_page: Path) -> None:
    assert gpt.requests() == [gpt_page.as_uri()]
    assert gpt.mistakes() == []
    # The policy of the page refuses what a script would ask for.
    asked = gpt.run("fetch('https://example.invalid/').then(() => 'sent', () => 'refused')")
    assert asked == "refused"


def test_values_of_other_functions_are_called_as_why_takes_them(
    browser: Browser, tmp_path: Path
) -> None:
    text = (
        TWO.replace(
            "return %0", "%1 = call @f(%0) : (tensor<8x32xf32>) -> tensor<8x32xf32>\n  return %1"
        )
        + """func.func private @f(%c: tensor<8x32xf32>) -> tensor<8x32xf32> {
      %0 = stablehlo.tanh %c : tensor<8x32xf32>
      return %0 : tensor<8x32xf32>
    }"""
    )
    result = Module.parse(text).propagate()
    result.report(tmp_path / "out.html")
    browser.open(tmp_path / "out.html")
    names = texts(browser, "#values tbody tr > :first-child")
    assert sorted(names) == ["%0", "%1", "@f %0"]
    for name in names:
        assert result.why(name).value == name


def test_the_source_has_shardings_and_collectives_beside_each_line(gpt: Browser) -> None:
    [line] = [text for text in texts(gpt, ".line") if "x32 = x.astype(jnp.float32)" in text]
    assert '[{"data", "fsdp"}, {}, {}] \N{MULTIPLICATION SIGN}74' in line
    assert any(
        "all_reduce tensor \N{MULTIPLICATION SIGN}12" in text for text in texts(gpt, ".chip.moved")
    )
    # A click on it shows what it is.
    gpt.click("button.chip.moved")
    assert texts(gpt, "#details h2")[0].startswith("all_")
    assert "because of" in texts(gpt, "#details dt")


def test_a_value_shows_its_picture_and_its_why(gpt: Browser) -> None:
    result = Module.from_file(GPT).propagate()
    search(gpt, "attention']['qkv']")
    gpt.click("#arguments tbody tr")
    assert texts(gpt, "#details h2") == ["state['adam']['m']['blocks'][*]['attention']['qkv']"]
    details = texts(gpt, "#details")[0]
    assert "12 values alike" in details
    [sharding] = [
        port.sharding
        for port in result.arguments()
        if port.label == "state['adam']['m']['blocks'][0]['attention']['qkv']"
    ]
    assert sharding is not None
    # The picture is that of `visualize`, cell by cell.
    picture = sharding.visualize((768, 2304))
    drawn = texts(gpt, "#details .grid td")
    assert len(drawn) == picture.num_blocks
    holders: dict[str, list[int]] = {}
    for device, slices in sharding.device_slices((768, 2304)).items():
        holders.setdefault(str(slices), []).append(device)
    assert {cell.partition(",")[0].partition("-")[0] for cell in drawn} == {
        str(min(ids)) for ids in holders.values()
    }
    assert "an annotated argument" in texts(gpt, "#details .why .origin")[0]
    gpt.press("Escape")
    assert gpt.run("document.getElementById('details').hidden")


def test_what_there_is_nothing_of_has_no_text(gpt: Browser) -> None:
    """Every kind of row is opened; a value that is alone has no others that are alike."""
    alone = 0
    for selector in ("#arguments tbody tr", "#results tbody tr", "#collectives tbody tr"):
        shown = gpt.run(f"""[...document.querySelectorAll('{selector}')].map((row) => {{
          row.click();
          return document.getElementById('details').innerText;
        }})""")
        assert shown
        alone += sum("alike" not in text for text in shown)
        for text in shown:
            assert not {"null", "undefined", "NaN"} & set(text.split())
    assert alone


def test_the_chain_of_a_value_leads_to_lines(gpt: Browser) -> None:
    search(gpt, "dot_general gpt_step.py:77")
    gpt.run("document.querySelector('#values tbody tr').focus()")
    gpt.press("Enter")
    steps = texts(gpt, "#details .why li")
    assert any("factor" in step and "priority" in step for step in steps)
    gpt.click("#details .why .link")
    assert gpt.run("document.querySelectorAll('.line.marked').length") == 1
    gpt.press("Escape")
    assert gpt.run("document.activeElement.closest('#values tbody tr') !== null")


def test_search_axis_and_order(gpt: Browser) -> None:
    whole = len(texts(gpt, "#collectives tbody tr"))
    search(gpt, "all_to_all")
    kinds = texts(gpt, "#collectives tbody tr > :first-child")
    assert set(kinds) == {"all_to_all"}
    search(gpt, "no such value anywhere")
    assert texts(gpt, "#values .count") == ["0 rows"]
    search(gpt, "")
    gpt.click(".axes button:nth-child(3)")
    axes = texts(gpt, "#collectives tbody tr td:nth-child(2)")
    assert 0 < len(axes) < whole
    assert all("tensor" in each for each in axes)
    assert all('"tensor"' in each for each in texts(gpt, "#values tbody tr td:nth-child(4)"))
    gpt.click(".axes button:nth-child(3)")
    assert len(texts(gpt, "#collectives tbody tr")) == whole
    gpt.click("#values th:nth-child(6) button")
    order = gpt.run("document.querySelector('#values th:nth-child(6)').getAttribute('aria-sort')")
    assert order == "descending"
    assert texts(gpt, "#values tbody tr td:nth-child(6)")[0] == "393 MiB"


def test_rows_are_walked_by_keys(gpt: Browser) -> None:
    gpt.run("document.querySelector('#values tbody tr').focus()")
    for key in ("ArrowDown", "j", "ArrowUp", "ArrowDown"):
        gpt.press(key)
    rows = "[...document.querySelectorAll('#values tbody tr')]"
    assert gpt.run(f"{rows}.indexOf(document.activeElement)") == 2


def test_the_timeline_can_be_zoomed(gpt: Browser) -> None:
    ends = texts(gpt, "#timeline svg .end")
    assert ends[0] == "0"
    gpt.run("document.querySelector('#timeline svg').focus()")
    gpt.press("+")
    # The cursor stays in view: at first it is on the first op.
    zoomed = texts(gpt, "#timeline svg .end")
    assert zoomed[0] == "0"
    assert zoomed[1] != ends[1]
    gpt.press("0")
    assert texts(gpt, "#timeline svg .end") == ends
    # Whole names, of the links that the device waits for.
    lanes = texts(gpt, "#timeline svg text")
    assert {"compute", "tensor", "fsdp", "data", "data, fsdp, tensor"} <= set(lanes)
    said = texts(gpt, "#timeline .count")[0]
    gpt.press("ArrowRight")
    assert texts(gpt, "#timeline .count")[0] != said


def test_it_is_readable_in_the_dark_and_on_paper(gpt: Browser) -> None:
    def contrast() -> float:
        return float(
            gpt.run(
                """(() => {
  const light = (text) => {
    const parts = text.match(/[\\d.]+/g).slice(0, 3).map((one) => {
      const share = Number(one) / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const paper = light(getComputedStyle(document.body).backgroundColor) + 0.05;
  return Math.min(...['body', '.quiet', 'a', '.count', 'dt, .card small'].map((one) => {
    const ink = light(getComputedStyle(document.querySelector(one)).color) + 0.05;
    return Math.max(ink, paper) / Math.min(ink, paper);
  }));
})()"""
            )
        )

    background = "getComputedStyle(document.body).backgroundColor"
    light = gpt.run(background)
    assert contrast() >= 4.5
    gpt.emulate(scheme="dark")
    assert gpt.run(background) != light
    assert contrast() >= 4.5
    gpt.emulate(media="print")
    assert gpt.run("getComputedStyle(document.querySelector('nav')).display") == "none"
    # What only moves on a screen is left out; the graph is on one page, however large.
    assert gpt.run("getComputedStyle(document.querySelector('#steps')).display") == "none"
    width, height = gpt.run(
        "(({ width, height }) => [width, height])"
        "(document.querySelector('#graph svg').getBoundingClientRect())"
    )
    assert width <= gpt.run("document.querySelector('main').clientWidth")
    assert height <= 220 / 25.4 * 96 + 1
    assert gpt.pdf().startswith(b"%PDF")


def test_nothing_is_cut_on_a_narrow_screen(gpt: Browser) -> None:
    gpt.call(
        "Emulation.setDeviceMetricsOverride",
        width=400,
        height=900,
        deviceScaleFactor=1,
        mobile=False,
    )
    try:
        assert gpt.run("document.documentElement.scrollWidth") <= 400
        cut = """[...document.querySelectorAll('.block[open] .code')]
            .filter((code) => code.scrollWidth > code.clientWidth).length"""
        assert gpt.run("document.querySelectorAll('.block[open] .code').length") > 0
        assert gpt.run(cut) == 0
    finally:
        gpt.call("Emulation.clearDeviceMetricsOverride")


def test_an_axis_may_be_called_script(browser: Browser, tmp_path: Path) -> None:
    evil = "<script>window.broken = 1</script>"
    text = TWO.replace('"x"', f'"{evil}"')
    Module.parse(text, filename=f"<img src=x onerror=broken>{evil}").propagate().report(
        tmp_path / "evil.html"
    )
    browser.open(tmp_path / "evil.html")
    assert browser.mistakes() == []
    assert browser.run("typeof window.broken") == "undefined"
    assert any(evil in text for text in texts(browser, ".chip"))
    assert f"{evil}=2" in texts(browser, ".axes button")
    browser.click(".axes button")
    browser.click("#arguments tbody tr")
    assert evil in texts(browser, "#details .why b")[0]
    assert browser.run("document.querySelectorAll('img, main script').length") == 0
    assert browser.mistakes() == []


def test_what_changed_is_marked(browser: Browser, tmp_path: Path) -> None:
    before = Module.parse(TWO).propagate()
    after = Module.parse(TWO.replace('[{"x"}, {?}]', '[{"x", "y"}, {?}]')).propagate()
    after.report(tmp_path / "changed.html", against=before)
    browser.open(tmp_path / "changed.html")
    assert texts(browser, "#values del") == ['[{"x"}, {}]']
    assert texts(browser, "#values ins") == ['[{"x", "y"}, {}]']
    assert len(texts(browser, "#arguments tbody tr")) == 2
    browser.click("#changed")
    assert len(texts(browser, "#arguments tbody tr")) == 1
    wide = {"height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.call("Emulation.setDeviceMetricsOverride", width=360, **wide)
    try:
        assert browser.run("document.documentElement.scrollWidth") <= 360
    finally:
        browser.call("Emulation.clearDeviceMetricsOverride")
    rows = texts(browser, "#changes tbody tr")
    assert any(row.startswith("peak memory") and "\N{MINUS SIGN}" in row for row in rows)


def test_a_collective_says_why_and_how_to_remove_it(browser: Browser, tmp_path: Path) -> None:
    text = TWO.replace(
        "%b: tensor<16x32xf32>)",
        '%b: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})',
    )
    result = Module.parse(text).propagate()
    collective = result.cost().top_collectives(1)[0]
    edit = collective.why.edit
    assert edit is not None
    result.report(tmp_path / "why.html", edits=1)
    browser.open(tmp_path / "why.html")
    browser.click("#collectives tbody tr")
    sides = texts(browser, "#details .why > li")
    assert [side.partition(" ")[0] for side in sides] == [
        side.value for side in collective.why.sides
    ]
    assert "an annotated argument" in sides[0]
    [found] = texts(browser, "#details .edit")
    assert found.startswith(f"annotate {edit.target} with [")
    assert browser.mistakes() == []
    result.report(tmp_path / "why.html")
    browser.open(tmp_path / "why.html")
    browser.click("#collectives tbody tr")
    assert texts(browser, "#details .edit") == []
    assert len(texts(browser, "#details .why > li")) == len(sides)


def test_a_text_that_is_cut_says_so(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = Module.parse(TWO).propagate()
    result.report(tmp_path / "whole.html")
    browser.open(tmp_path / "whole.html")
    assert not [text for text in texts(browser, "#source > p") if "left out" in text]
    monkeypatch.setattr("shardcore.report.page.source_text.MAX_LISTED", 3)
    result.report(tmp_path / "cut.html")
    browser.open(tmp_path / "cut.html")
    [_, note] = texts(browser, "#source > p")
    count = len([line for line in str(result.module).split("\n") if line])
    assert note.startswith(f"lines 4 to {count} are left out here")


def test_ninety_six_layers(browser: Browser, tmp_path: Path) -> None:
    """The layers of the example, eight times as often: as many ops as 96 layers have."""
    layer = "\n".join(
        f"""  %n{n} = stablehlo.tanh %x{n} : tensor<64x512xf32> loc("model.py":{n % 60 + 2}:3)
  %d{n} = stablehlo.dot_general %n{n}, %w, contracting_dims = [1] x [0]
      : (tensor<64x512xf32>, tensor<512x512xf32>) -> tensor<64x512xf32> loc("model.py":9:1)
  %x{n + 1} = stablehlo.add %x{n}, %d{n} : tensor<64x512xf32> loc("model.py":{n % 60 + 3}:3)"""
        for n in range(26_000)
    )
    sharding = '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}]>}'
    text = f"""sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(%x0: tensor<64x512xf32> {sharding}, %w: tensor<512x512xf32>)
    -> tensor<64x512xf32> {{
{layer}
  return %x26000 : tensor<64x512xf32>
}}"""
    module = Module.parse(text)
    assert module.num_ops > 78_000
    result = module.propagate()
    result.report(tmp_path / "large.html")
    assert (tmp_path / "large.html").stat().st_size < 5_000_000
    assert browser.open(tmp_path / "large.html") < 10
    assert browser.mistakes() == []
    search(browser, "%d25999")
    assert texts(browser, "#values .count")[0].startswith("1 row,")
    browser.click("#values tbody tr")
    assert "26,000 values alike" in texts(browser, "#details")[0]
    assert shardcore.cost(result).peak_bytes > 0


def test_modules_have_their_costs(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "scopes.html"
    # What the head computes is returned, too: else its forward pass is in the backward's kernel.
    returned = SCOPED.replace(
        "return %3 : tensor<8x64xf32>", "return %3, %2 : tensor<8x64xf32>, tensor<8x64xf32>"
    )
    returned = returned.replace(
        "-> tensor<8x64xf32> {", "-> (tensor<8x64xf32>, tensor<8x64xf32>) {", 1
    )
    result = Module.parse(returned).propagate()
    result.report(path, "tpu-v5e", compiler="none")
    browser.open(path)
    assert browser.mistakes() == []
    assert texts(browser, "#modules > details > summary b") == ["net"]
    # Layers that differ in their numbers alone are one row; passes are summed and told apart.
    inside = texts(browser, "#modules > details > div")
    assert sorted(row.split()[0] for row in inside) == ["head", "layer_*"]
    (layers,) = [row for row in inside if row.startswith("layer_*")]
    assert "\N{MULTIPLICATION SIGN}2" in layers
    (head,) = [row for row in inside if row.startswith("head")]
    assert "forward" in head
    assert "backward" in head
    gone = "document.querySelector('#modules > details').open"
    assert browser.run(gone)
    browser.click("#modules > details > summary")
    assert not browser.run(gone)


def test_without_scopes_functions_are_modules(gpt: Browser) -> None:
    assert "layer_norm" in texts(gpt, "#modules tbody th")
    shares = texts(gpt, "#modules tbody tr > :nth-child(3)")
    times = [float(share.split()[-2]) for share in shares]
    assert 98 <= sum(times) <= 101
    assert times == sorted(times, reverse=True)
