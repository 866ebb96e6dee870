// What is in memory over the step, in groups, and what makes up the peak.

const TALL = 200;
const STRIP = 10;
const KINDS = ["parameters", "optimizer state", "other arguments", "outputs", "activations", "temporaries"];
const GROUPINGS = { kind: "kind", layer: "layer", scope: "scope", line: "source line" };
// The colour of a group: layers, of which there are more than colours, go through the hues.
const look = (by, name, at, count) => (by === "layer"
  ? { class: "band", style: `--color: hsl(${Math.round((300 * at) / count)} 45% ${at % 2 ? 50 : 58}%)` }
  : { class: `band kind${by === "kind" ? KINDS.indexOf(name) : at}` });
const keyOf = (by, name, at, count) => {
  const { class: kind, style = null } = look(by, name, at, count);
  return element("span", { class: `key ${kind}`, style });
};

function memorySection() {
  const memory = data.cost?.memory;
  if (!memory) return null;
  const total = (at) => memory.charts[0].bytes.reduce((sum, bytes) => sum + bytes[at], 0);
  const said = element("p", { class: "count", role: "status" });
  const show = (at) => {
    const scope = textOf(memory.scope[at]);
    said.textContent = [`${at === memory.peak ? "the peak, " : ""}${bytesText(total(at))} at ${shortOp(textOf(memory.name[at]))}`,
      placeText(memory.place[at]), PASSES[memory.pass[at]], scope].filter(Boolean).join(", ");
  };
  if (memory.name.length) show(memory.peak);
  const legend = element("ul", { class: "legend" });
  const explain = ({ by, names, bytes }) => legend.replaceChildren(...names.map((name, at) => element("li", {},
    keyOf(by, name, at, names.length), `${name} ${bytesText(bytes[at][memory.peak])}`)));
  explain(memory.charts[0]);
  if (memory.name.length < 2) return section("memory", "Memory", legend, said, peakTable(memory.rows), layerTable(memory.layers));
  const chart = memoryChart(memory, total, show);
  const choices = memory.charts.map((one, at) => element("label", {}, element("input", { type: "radio", name: "memory-by",
    checked: at === 0, change: () => {
      explain(one);
      chart.choose(one);
    } }), ` ${GROUPINGS[one.by]}`));
  return section("memory", "Memory",
    element("p", { class: "quiet" }, "What one device holds over the predicted step. The list has the bytes at the peak.",
      hint("Point at the chart, or move with the arrow keys, for other moments.")),
    element("fieldset", { class: "tools" }, element("legend", {}, "by"), ...choices),
    legend, chart.picture, passLegend(memory.pass), said, peakTable(memory.rows), layerTable(memory.layers));
}

function passLegend(passes) {
  const used = PASSES.filter((_, pass) => passes.includes(pass));
  if (used.length < 2) return null;
  return element("ul", { class: "legend" }, element("li", { class: "quiet" }, "the strip below the chart:"),
    ...used.map((name) => element("li", {}, element("span", { class: `key pass${PASSES.indexOf(name)}` }), name)));
}

function memoryChart(memory, total, show) {
  const last = memory.name.length - 1;
  const most = Math.max(...memory.name.map((_, at) => total(at)), 1);
  const limit = data.cost.hbm_bytes;
  const top = limit < 2 * most ? Math.max(limit, most) : most;
  // Without known times every column is equally wide.
  const end = memory.starts.at(-1);
  const start = (at) => (end ? memory.starts[at] / end : at / (last + 1));
  const y = (bytes) => 16 + TALL * (1 - bytes / top);
  let chosen = memory.charts[0];
  let now = memory.peak;
  let left = 0;
  let wide = 1;
  const x = (at) => left + start(at) * wide;
  const cursor = drawn("line", { y1: 12, y2: 16 + TALL + STRIP + 4, class: "cursor" });

  function draw(width) {
    left = 74;
    wide = width - left - 4;
    let below = memory.name.map(() => 0);
    const areas = chosen.names.map((name, group) => {
      const above = below.map((sum, at) => sum + chosen.bytes[group][at]);
      const edge = (sums) => sums.flatMap((sum, at) => [`${x(at).toFixed(1)} ${y(sum).toFixed(1)}`,
        `${x(at + 1).toFixed(1)} ${y(sum).toFixed(1)}`]);
      const d = `M${edge(above).join("L")}L${edge(below).reverse().join("L")}Z`;
      below = above;
      return drawn("path", { d, ...look(chosen.by, name, group, chosen.names.length) }, drawn("title", {}, name));
    });
    const runs = [];
    memory.pass.forEach((pass, at) => {
      if (runs.at(-1)?.pass === pass) runs.at(-1).stop = at + 1;
      else runs.push({ pass, start: at, stop: at + 1 });
    });
    const strip = new Set(memory.pass).size < 2 ? [] : runs.map((run) => drawn("rect", { x: x(run.start).toFixed(1),
      width: Math.max(x(run.stop) - x(run.start), 0.5).toFixed(1), y: TALL + 19, height: STRIP, class: `pass${run.pass}` },
    drawn("title", {}, PASSES[run.pass])));
    picture.setAttribute("viewBox", `0 0 ${width} ${TALL + 50}`);
    picture.replaceChildren(
      drawn("text", { x: left - 6, y: y(most) + 10, "text-anchor": "end" }, bytesText(most)),
      drawn("text", { x: left - 6, y: 16 + TALL, "text-anchor": "end" }, "0"), ...areas, ...strip,
      ...(limit <= top ? [drawn("line", { x1: left, x2: left + wide, y1: y(limit), y2: y(limit), class: "limit" }),
        drawn("text", { x: left + 4, y: y(limit) - 4 }, `${data.cost.hardware} has ${bytesText(limit)}`)] : []),
      ...(end ? [drawn("text", { x: left, y: TALL + 44 }, "0"),
        drawn("text", { x: left + wide, y: TALL + 44, "text-anchor": "end" }, secondsText(end * 1e-12))] : []), cursor);
    move(now);
  }
  function move(at) {
    now = Math.min(Math.max(at, 0), last);
    const middle = (x(now) + x(now + 1)) / 2;
    cursor.setAttribute("x1", middle);
    cursor.setAttribute("x2", middle);
    show(now);
  }
  const picture = drawn("svg", { role: "img", tabindex: 0, class: "chart", height: TALL + 50,
    "aria-label": "memory over the predicted step; the arrow keys move, Home and End go to its ends",
    mousemove: (event) => {
      const share = (event.clientX - picture.getBoundingClientRect().left - left) / wide;
      const found = memory.name.findIndex((_, at) => start(at + 1) > share);
      move(found < 0 ? last : found);
    },
    mouseleave: () => move(memory.peak),
    keydown: (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20, Home: -last, End: last }[event.key];
      if (!by) return;
      move(now + by);
      event.preventDefault();
    } });
  fitted(picture, draw);
  return { picture, choose: (one) => {
    chosen = one;
    draw(left + wide + 4);
  } };
}

function peakTable(found) {
  const whole = data.cost.peak_bytes;
  const rows = found.map(([kind, name, pass, count, bytes, place]) => ({ kind, name: textOf(name), pass, times: count, bytes, place }));
  const isByPass = new Set(rows.map((row) => row.pass)).size > 1;
  return makeTable({
    name: "In memory at the peak", title: "What makes up the peak", rows, first: 12,
    search: (row) => ({ text: `${row.kind} ${row.name} ${placeText(row.place)}`.toLowerCase(), axes: [sought.axis], was: 0 }),
    columns: [
      { name: "kind", text: (row) => row.kind, cell: (row) => element("span", { class: "kind" },
        keyOf("kind", row.kind), row.kind) },
      { name: "argument, or scope or op that makes it", text: (row) => shortOp(row.name), kind: "mono" },
      { name: "values", text: (row) => String(row.times), key: (row) => row.times, number: true },
      { name: "bytes a device", text: (row) => bytesText(row.bytes), key: (row) => row.bytes, number: true },
      { name: "of the peak", text: (row) => percent(row.bytes / whole), key: (row) => row.bytes, number: true },
      ...(isByPass ? [{ name: "made in", text: (row) => (row.place < 0 ? "" : PASSES[row.pass]) }] : []),
      { name: "source", text: (row) => placeText(row.place) },
    ],
  });
}

function layerTable(layers) {
  if (!layers.length) return null;
  const used = KINDS.map((kind, at) => ({ kind, at })).filter(({ at }) => layers.some(([, bytes]) => bytes[at]));
  const rows = layers.map(([layer, bytes]) => ({ layer, bytes, sum: bytes.reduce((a, b) => a + b, 0) }));
  return element("details", {}, element("summary", {}, `the peak by layer: ${countOf(rows.length, "row")}`), makeTable({
    name: "The peak by layer", rows, search: () => ({ text: "", axes: [sought.axis], was: 0 }),
    columns: [
      { name: "layer", text: (row) => (row.layer === null ? "outside of layers" : String(row.layer)), key: (row) => row.layer ?? Infinity },
      ...used.map(({ kind, at }) => ({ name: kind, text: (row) => (row.bytes[at] ? bytesText(row.bytes[at]) : ""),
        key: (row) => row.bytes[at], number: true })),
      { name: "all", text: (row) => bytesText(row.sum), key: (row) => row.sum, number: true },
    ],
  }));
}
