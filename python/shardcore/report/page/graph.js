// The computation graph, and propagation step by step on it.

const TALL_GRAPH = 560;

function graphSection() {
  const { graph } = data;
  const frames = framesPart();
  const inside = graph.reason ? [element("p", { class: "quiet" }, `The computation graph is not drawn here: ${graph.reason}`)]
    : graphView(graph, frames);
  return section("graph", frames ? "Graph, and propagation step by step" : "Graph", ...inside, frames?.part ?? null);
}

function graphView(graph, frames) {
  const { picture, shown, groups } = drawnGraph(graph);
  frames?.watch((state, changed, isDone) => {
    for (const [value, now] of state) {
      const node = shown.get(value);
      if (!node) continue;
      // The result has no dims that are open.
      node.row.textContent = isDone ? node.text : now;
      node.box.classList.toggle("changed", changed.has(value) && !isDone);
    }
  });
  const view = element("div", { class: "scroll graph-view" }, picture);
  const size = [graph.width + 2 * MARGIN, graph.height + 2 * MARGIN];
  let scale = 1;
  // Keeps the middle of the view where it is.
  function zoom(to) {
    const middle = [(view.scrollLeft + view.clientWidth / 2) / scale, (view.scrollTop + view.clientHeight / 2) / scale];
    scale = Math.min(Math.max(to, 0.05), 3);
    picture.style.width = `${Math.floor(size[0] * scale)}px`;
    view.scrollLeft = middle[0] * scale - view.clientWidth / 2;
    view.scrollTop = middle[1] * scale - view.clientHeight / 2;
  }
  const whole = () => zoom(Math.min(1, (view.clientWidth - 2) / size[0], TALL_GRAPH / size[1]));
  fitted(view, whole);
  view.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    zoom(scale * (event.deltaY > 0 ? 0.8 : 1.25));
    event.preventDefault();
  }, { passive: false });
  view.addEventListener("keydown", (event) => {
    const keys = { "+": () => zoom(1.5 * scale), "=": () => zoom(1.5 * scale), "-": () => zoom(scale / 1.5), 0: whole };
    if (keys[event.key]) {
      keys[event.key]();
      event.preventDefault();
      return;
    }
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const at = groups.indexOf(document.activeElement);
    if (at < 0 || (!by && event.key !== "Enter" && event.key !== " ")) return;
    if (by) groups[Math.min(Math.max(at + by, 0), groups.length - 1)].focus();
    else openNode(graph, at, show);
    event.preventDefault();
  });
  // In full size, where the panel does not hide it.
  function show(at) {
    if (scale < 0.8) zoom(1);
    groups.forEach((group, other) => group.classList.toggle("open", other === at));
    const [x, y, width, height] = graph.nodes[at].box;
    view.scrollLeft = (x + MARGIN + width / 2) * scale - view.clientWidth / 4;
    view.scrollTop = (y + MARGIN + height / 2) * scale - view.clientHeight / 2;
    view.scrollIntoView({ block: "nearest" });
  }
  groups.forEach((group, at) => {
    group.addEventListener("click", () => openNode(graph, at, show));
    group.addEventListener("focus", () => {
      for (const other of groups) other.setAttribute("tabindex", other === group ? 0 : -1);
    });
  });
  groups[0]?.setAttribute("tabindex", 0);
  const button = (label, act, name) => element("button", { type: "button", click: act, "aria-label": name }, label);
  return [
    element("p", { class: "quiet" }, `${graph.hint ? `Ops are ${graph.hint.replace(/;.*/s, "")}. ` : ""}Tensors are blue, those with an `
      + "annotation have a border, ops are red.",
    hint("A click, or Enter, opens one; arrows move between them; Ctrl and the wheel, or + and -, zoom.")),
    element("p", { class: "tools" }, button("+", () => zoom(1.5 * scale), "zoom in"), button("−", () => zoom(scale / 1.5), "zoom out"),
      button("whole", whole, "the whole graph"), button("full size", () => zoom(1), "full size")),
    view,
    graph.hint ? element("p", { class: "quiet" }, "More of it: ", element("code", {}, "shardcore graph FILE"),
      ` with ${graph.hint.replace(/^.*?to see more: /s, "")}`) : null];
}

const MARGIN = 16;

// The graph as a picture, its nodes, and for each value the text that shows its sharding.
function drawnGraph(graph) {
  const shown = new Map();
  const layers = graph.layers.map(([x, y, width, height, times]) => [
    drawn("rect", { class: "layer", x, y, width, height, rx: 8 }),
    drawn("text", { x: x + 6, y: y + 12 }, `\u00d7 ${times}`)]);
  const edges = graph.edges.map(([, , d, again]) => drawn("path", { class: again ? "edge again" : "edge", d }));
  const groups = graph.nodes.map(({ kind, lines, title, annotated, value, box: [x, y, width, height] }) => {
    const rows = lines.map((line, at) => drawn("text", { class: "label", x: x + width / 2, y: y + 15 + 15 * at }, line));
    const box = drawn("rect", { class: `${kind === "tensor" ? kind : "op"}${annotated ? " annotated" : ""}`, x, y, width, height, rx: 3 });
    if (kind === "tensor" && lines.length > 2) shown.set(value, { box, row: rows.at(-1), text: lines.at(-1) });
    return drawn("g", { tabindex: -1, role: "button", "aria-label": (title ?? lines.join("\n")).replaceAll("\n", ", ") },
      drawn("title", {}, title ?? lines.join("\n")), box, ...rows);
  });
  const picture = drawn("svg", { class: "graph", viewBox: `${-MARGIN} ${-MARGIN} ${graph.width + 2 * MARGIN} ${graph.height + 2 * MARGIN}`,
    role: "group", "aria-label": "the computation graph" }, ...layers.flat(), ...edges, ...groups);
  return { picture, shown, groups };
}

// A node: what it is, where it comes from, and its neighbours.
function openNode(graph, at, show) {
  const { kind, lines, title, value, place } = graph.nodes[at];
  const row = kind === "tensor" ? [...data.arguments, ...data.values].find(({ names }) => names.includes(value)) : null;
  const [name, ...rest] = title ? title.split("\n") : lines;
  const neighbours = (numbers) => (numbers.length ? element("ul", { class: "rows" }, ...numbers.map((number) => element("li", {},
    element("button", { type: "button", class: "link", click: () => openNode(graph, number, show) },
      graph.nodes[number].lines.join(", "))))) : "");
  const line = /^(.*):(\d+)$/.exec(name);
  const file = line && kind !== "tensor" ? data.files.find((one) => baseName(one.name) === line[1]) : null;
  openPanel(name, facts([
    ["kind", kind === "ops" ? "a group of ops" : kind],
    [kind === "ops" ? "contents" : "type", rest.join(", ")],
    ["source", place >= 0 ? stackLinks(place) : file ? lineLink([file.name, Number(line[2])]) : ""],
    ["from", neighbours(graph.edges.filter(([, target]) => target === at).map(([source]) => source))],
    ["to", neighbours(graph.edges.filter(([source]) => source === at).map(([, target]) => target))],
    ["more", row ? element("button", { type: "button", class: "link", click: () => openValue(row) }, "its devices, and why") : ""],
  ]));
  show(at);
}

// Propagation as frames: which visit changed which value.
function framesPart() {
  const { steps, left_out } = data.frames;
  const visits = steps.flatMap(([priority, step, strategy, all]) => all.map((visit) => ({ priority, step, strategy, visit })));
  if (!visits.length) return null;
  const first = new Map();
  for (const { visit: [, , changes] } of visits) {
    for (const [value, before] of changes) if (!first.has(value)) first.set(value, before);
  }
  const watching = [];
  const title = element("p", { id: "frame", role: "status" });
  const list = element("ul", { class: "rows" });
  const range = element("input", { type: "range", id: "frames", min: 0, max: visits.length, value: visits.length,
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
      ? `${made < visits.length ? "" : "after propagation; the last visit: "}visit ${made} of ${visits.length}: user priority ${last.priority}, op-priority step ${last.step}, ${last.strategy}: ` +
        `${textOf(last.visit[0]) || "dims that take part"} ${placeText(last.visit[1])}`
      : `before propagation; ${countOf(visits.length, "visit")} will change shardings`);
    const changes = last ? last.visit[2] : [];
    list.replaceChildren(...changes.map(([value, before, after]) =>
      element("li", {}, `${textOf(value)}  ${textOf(before)} \u2192 ${textOf(after)}`)));
    const texts = new Map([...state].map(([value, now]) => [textOf(value), textOf(now)]));
    const changed = new Set(changes.map(([value]) => textOf(value)));
    for (const watch of watching) watch(texts, changed, made === visits.length);
  }

  draw();
  const more = left_out ? element("p", { class: "quiet" }, `${countOf(left_out, "later visit")} left out`) : null;
  const part = element("div", { id: "steps" }, element("h3", {}, "Propagation step by step"),
    element("p", { class: "tools" }, element("button", { type: "button", id: "back", click: move(-1) }, "back"), range,
      element("button", { type: "button", id: "next", click: move(1) }, "next")),
    title, list, more);
  return { part, watch: (watch) => {
    watching.push(watch);
    draw();
  } };
}
