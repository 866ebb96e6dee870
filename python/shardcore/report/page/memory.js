// What is in memory over the program, by kind, and what makes up the peak.

const TALL = 200;
const kindClass = (kind) => `kind${["parameters", "optimizer state", "other arguments", "outputs", "activations",
  "temporaries"].indexOf(kind)}`;

function memorySection() {
  const memory = data.cost?.memory;
  if (!memory) return null;
  const kinds = memory.kinds.map((kind, at) => ({ kind, bytes: memory.bytes[at] }));
  const total = (at) => kinds.reduce((sum, { bytes }) => sum + bytes[at], 0);
  const said = element("p", { class: "count", role: "status" });
  const show = (at) => {
    const scope = textOf(memory.scope[at]);
    said.textContent = [`${at === memory.peak ? "peak, " : ""}${bytesText(total(at))} at ${shortOp(textOf(memory.name[at]))}`,
      placeText(memory.place[at]), PASSES[memory.pass[at]], scope].filter(Boolean).join(", ");
  };
  const legend = kinds.map(({ kind, bytes }) => element("li", {}, element("span", { class: `key ${kindClass(kind)}` }),
    `${kind} ${bytesText(bytes[memory.peak])}`));
  if (memory.name.length) show(memory.peak);
  return section("memory", "Memory", element("p", {}, "What a device holds, op by op; at the peak:"),
    element("ul", { class: "legend" }, ...legend),
    memory.name.length > 1 ? element("div", { class: "scroll" }, memoryChart(memory, kinds, total, show)) : null, said,
    peakTable(memory.rows), layerTable(memory.layers));
}

function memoryChart(memory, kinds, total, show) {
  const last = memory.name.length - 1;
  const most = Math.max(...memory.name.map((_, at) => total(at)), 1);
  const limit = data.cost.hbm_bytes;
  const top = limit < 2 * most ? Math.max(limit, most) : most;
  const x = (at) => LEFT + (at / last) * WIDTH;
  const y = (bytes) => 16 + TALL * (1 - bytes / top);
  let below = memory.name.map(() => 0);
  const areas = kinds.map(({ kind, bytes }) => {
    const above = below.map((sum, at) => sum + bytes[at]);
    const edge = (sums) => sums.map((sum, at) => `${x(at).toFixed(1)} ${y(sum).toFixed(1)}`);
    const d = `M${edge(above).join("L")}L${edge(below).reverse().join("L")}Z`;
    below = above;
    return drawn("path", { d, class: kindClass(kind) }, drawn("title", {}, kind));
  });
  // The passes, below.
  const passes = [];
  memory.pass.forEach((pass, at) => {
    const before = passes.at(-1);
    if (before?.pass === pass) before.stop = at;
    else passes.push({ pass, start: at, stop: at });
  });
  const named = passes.length > 1 ? passes.filter(({ start, stop }) => x(stop) - x(start) > 60) : [];
  const cursor = drawn("line", { x1: x(memory.peak), x2: x(memory.peak), y1: 12, y2: 16 + TALL, class: "cursor" });
  let now = memory.peak;
  const move = (at) => {
    now = Math.min(Math.max(at, 0), last);
    cursor.setAttribute("x1", x(now));
    cursor.setAttribute("x2", x(now));
    show(now);
  };
  return drawn("svg", { viewBox: `0 0 ${LEFT + WIDTH + 4} ${TALL + 40}`, role: "img", tabindex: 0, class: "kinds",
    "aria-label": "memory over the program by kind; arrows move",
    mousemove: (event) => {
      const box = event.currentTarget.getBoundingClientRect();
      move(Math.round(((((event.clientX - box.left) / box.width) * (LEFT + WIDTH + 4) - LEFT) / WIDTH) * last));
    },
    keydown: (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20, Home: -last, End: last }[event.key];
      if (!by) return;
      move(now + by);
      event.preventDefault();
    } },
  drawn("text", { x: LEFT - 8, y: y(most) + 10, "text-anchor": "end" }, bytesText(most)),
  drawn("text", { x: LEFT - 8, y: 16 + TALL, "text-anchor": "end" }, "0"), ...areas,
  ...(limit <= top ? [drawn("line", { x1: LEFT, x2: LEFT + WIDTH, y1: y(limit), y2: y(limit), class: "limit" }),
    drawn("text", { x: LEFT + 4, y: y(limit) - 4 }, `${data.cost.hardware} has ${bytesText(limit)}`)] : []),
  ...named.flatMap(({ pass, start, stop }) => [
    drawn("line", { x1: x(start), x2: x(stop), y1: TALL + 21, y2: TALL + 21, class: "rule" }),
    drawn("text", { x: (x(start) + x(stop)) / 2, y: TALL + 34, "text-anchor": "middle" }, PASSES[pass])]), cursor);
}

function peakTable(found) {
  const whole = data.cost.peak_bytes;
  const rows = found.map(([kind, name, pass, count, bytes, place]) => ({ kind, name: textOf(name), pass, times: count, bytes, place }));
  const isByPass = new Set(rows.map((row) => row.pass)).size > 1;
  return makeTable({
    name: "In memory at the peak", rows, first: 12,
    search: (row) => ({ text: `${row.kind} ${row.name} ${placeText(row.place)}`.toLowerCase(), axes: [sought.axis], was: 0 }),
    columns: [
      { name: "kind", text: (row) => row.kind, cell: (row) => element("span", { class: "kind" },
        element("span", { class: `key ${kindClass(row.kind)}` }), row.kind) },
      { name: "what", text: (row) => shortOp(row.name), kind: "mono" },
      { name: "count", text: (row) => String(row.times), key: (row) => row.times, number: true },
      { name: "a device", text: (row) => bytesText(row.bytes), key: (row) => row.bytes, number: true },
      { name: "of the peak", text: (row) => percent(row.bytes / whole), key: (row) => row.bytes, number: true },
      ...(isByPass ? [{ name: "made in", text: (row) => (row.kind.includes("t") && row.place < 0 ? "" : PASSES[row.pass]) }] : []),
      { name: "source", text: (row) => placeText(row.place) },
    ],
  });
}

function layerTable(layers) {
  if (!layers.length) return null;
  const kinds = ["parameters", "optimizer state", "other arguments", "outputs", "activations", "temporaries"];
  const used = kinds.map((kind, at) => ({ kind, at })).filter(({ at }) => layers.some(([, bytes]) => bytes[at]));
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
