// The computation graph, and propagation step by step.

function graphSection() {
  const { graph } = data;
  if (graph.reason) {
    return section("graph", "Graph", element("p", { class: "quiet" }, `The computation graph is not drawn here: ${graph.reason}`));
  }
  const hint = graph.hint ? element("p", { class: "quiet" }, `shardcore graph FILE: ${graph.hint}`) : null;
  return section("graph", "Graph", hint, element("div", { class: "scroll" }, drawnGraph(graph).picture));
}

// The graph as a picture, and for each value the text that shows its sharding.
function drawnGraph(graph) {
  const shown = new Map();
  const layers = graph.layers.map(([x, y, width, height, times]) => [
    drawn("rect", { class: "layer", x, y, width, height, rx: 8 }),
    drawn("text", { x: x + 6, y: y + 12 }, `\u00d7 ${times}`)]);
  const edges = graph.edges.map(([d, again]) => drawn("path", { class: again ? "edge again" : "edge", d }));
  const nodes = graph.nodes.map(({ kind, lines, title, annotated, value, box: [x, y, width, height] }) => {
    const rows = lines.map((line, at) => drawn("text", { class: "label", x: x + width / 2, y: y + 15 + 15 * at }, line));
    const box = drawn("rect", { class: `${kind === "tensor" ? kind : "op"}${annotated ? " annotated" : ""}`, x, y, width, height, rx: 3 });
    if (kind === "tensor" && lines.length > 2) shown.set(value, { box, row: rows[rows.length - 1] });
    return drawn("g", {}, drawn("title", {}, title ?? lines.join("\n")), box, ...rows);
  });
  const picture = drawn("svg", { class: "graph", viewBox: `-16 -16 ${graph.width + 32} ${graph.height + 32}`, role: "img",
    "aria-label": "the computation graph", style: `width: ${graph.width + 32}px` }, ...layers.flat(), ...edges, ...nodes);
  return { picture, shown };
}

function framesSection() {
  const { steps, left_out } = data.frames;
  const visits = steps.flatMap(([priority, step, strategy, all]) => all.map((visit) => ({ priority, step, strategy, visit })));
  if (!visits.length) return null;
  const first = new Map();
  for (const { visit: [, , changes] } of visits) {
    for (const [value, before] of changes) if (!first.has(value)) first.set(value, before);
  }
  const graph = data.graph.reason ? null : drawnGraph(data.graph);
  const title = element("p", { id: "frame", role: "status" });
  const list = element("ul", { class: "rows" });
  const range = element("input", { type: "range", id: "frames", min: 0, max: visits.length, value: 0,
    "aria-label": "visits made", input: () => draw() });
  const move = (by) => () => {
    range.value = Number(range.value) + by;
    draw();
  };

  function draw() {
    const made = Number(range.value);
    const state = new Map(first);
    visits.slice(0, made).forEach(({ visit: [, , changes] }) => changes.forEach(([value, , after]) => state.set(value, after)));
    const last = made ? visits[made - 1] : null;
    title.replaceChildren(last
      ? `visit ${made} of ${visits.length}: user priority ${last.priority}, op-priority step ${last.step}, ${last.strategy}: ` +
        `${textOf(last.visit[0]) || "dims that take part"} ${placeText(last.visit[1])}`
      : `before propagation; ${countOf(visits.length, "visit")} will change shardings`);
    const changes = last ? last.visit[2] : [];
    list.replaceChildren(...changes.map(([value, before, after]) =>
      element("li", {}, `${textOf(value)}  ${textOf(before)} \u2192 ${textOf(after)}`)));
    if (!graph) return;
    const changed = new Set(changes.map(([value]) => textOf(value)));
    for (const [value, now] of state) {
      const node = graph.shown.get(textOf(value));
      if (!node) continue;
      node.row.textContent = textOf(now);
      node.box.classList.toggle("changed", changed.has(textOf(value)));
    }
  }

  draw();
  const more = left_out ? element("p", { class: "quiet" }, `${countOf(left_out, "later visit")} left out`) : null;
  return section("steps", "Propagation step by step",
    element("div", { class: "tools" }, element("button", { type: "button", id: "back", click: move(-1) }, "back"), range,
      element("button", { type: "button", id: "next", click: move(1) }, "next")),
    title, list, graph ? element("div", { class: "scroll" }, graph.picture) : null, more);
}
