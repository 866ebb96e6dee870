// The predicted timeline and the memory over it. Pieces follow each other in the order of the program, and add up to the step.

const LANE = 22;
const MEMORY = 120;
const LEFT = 110;
const WIDTH = 1000;
const MIN_PIXELS = 0.5;

function timelineSection() {
  if (!data.cost?.steps.time.length) return null;
  const { lanes, steps } = data.cost;
  const starts = [];
  let total = 0;
  for (const time of steps.time) {
    starts.push(total);
    total += time;
  }
  const most = Math.max(...steps.live, 1);
  let view = [0, total || 1];
  const height = lanes.length * LANE + MEMORY + 40;
  const chart = drawn("svg", { viewBox: `0 0 ${LEFT + WIDTH} ${height}`, role: "img", tabindex: 0,
    "aria-label": "predicted timeline and memory; plus and minus zoom, arrows move" });
  const said = element("p", { class: "count", role: "status" }, " ");

  const x = (time) => LEFT + ((time - view[0]) / (view[1] - view[0])) * WIDTH;
  const first = () => {
    let [low, high] = [0, starts.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (starts[middle] + steps.time[middle] < view[0]) low = middle + 1;
      else high = middle;
    }
    return low;
  };

  function draw() {
    const bars = lanes.flatMap((name, lane) => [
      drawn("text", { x: LEFT - 8, y: lane * LANE + 15, "text-anchor": "end" }, name.slice(0, 14)),
      drawn("line", { x1: LEFT, x2: LEFT + WIDTH, y1: (lane + 1) * LANE, y2: (lane + 1) * LANE, class: "rule" }),
    ]);
    const pending = lanes.map(() => null);
    const flush = (lane) => {
      const piece = pending[lane];
      pending[lane] = null;
      if (!piece) return;
      const [from, to] = [Math.max(x(piece.start), LEFT), Math.min(x(piece.stop), LEFT + WIDTH)];
      if (to <= from) return;
      bars.push(drawn("rect", { x: from.toFixed(2), y: lane * LANE + 3, width: Math.max(to - from, MIN_PIXELS).toFixed(2),
        height: LANE - 6, class: lane ? "sent" : "compute", "data-step": piece.step }));
    };
    let line = "";
    let last = -1;
    let peak = 0;
    for (let at = first(); at < starts.length && starts[at] <= view[1]; at++) {
      const lane = steps.lane[at];
      const stop = starts[at] + steps.time[at];
      const piece = pending[lane];
      // Pieces too small to see are drawn as one.
      if (piece && x(starts[at]) - x(piece.stop) < MIN_PIXELS && x(stop) - x(piece.start) < 2 * MIN_PIXELS) piece.stop = stop;
      else {
        flush(lane);
        pending[lane] = { start: starts[at], stop, step: at };
      }
      const pixel = Math.min(Math.max(Math.floor(x(starts[at])), LEFT), LEFT + WIDTH);
      peak = pixel === last ? Math.max(peak, steps.live[at]) : steps.live[at];
      const y = lanes.length * LANE + 20 + MEMORY * (1 - peak / most);
      line += `${line ? "L" : "M"}${pixel} ${y.toFixed(1)}`;
      last = pixel;
    }
    lanes.forEach((_, lane) => flush(lane));
    const bottom = lanes.length * LANE + 20 + MEMORY;
    const parts = [...bars];
    if (line) {
      parts.push(drawn("path", { d: `${line}L${LEFT + WIDTH} ${bottom}L${LEFT} ${bottom}Z`, class: "memory" }));
    }
    parts.push(drawn("text", { x: LEFT - 8, y: bottom - MEMORY + 10, "text-anchor": "end" }, bytesText(most)),
      drawn("text", { x: LEFT - 8, y: bottom, "text-anchor": "end" }, "memory"),
      drawn("text", { x: LEFT, y: height - 4 }, secondsText(view[0] * 1e-12)),
      drawn("text", { x: LEFT + WIDTH, y: height - 4, "text-anchor": "end" }, secondsText(view[1] * 1e-12)));
    chart.replaceChildren(...parts);
  }

  function zoom(factor, center = (view[0] + view[1]) / 2) {
    const span = Math.min(Math.max((view[1] - view[0]) * factor, 1), total || 1);
    const share = (center - view[0]) / (view[1] - view[0]);
    move(center - span * share, span);
  }
  function move(start, span = view[1] - view[0]) {
    const from = Math.min(Math.max(start, 0), (total || 1) - span);
    view = [from, from + span];
    draw();
  }
  const timeAt = (event) => {
    const box = chart.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * (LEFT + WIDTH) - LEFT;
    return view[0] + (at / WIDTH) * (view[1] - view[0]);
  };
  const stepAt = (time) => {
    let [low, high] = [0, starts.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (starts[middle] <= time) low = middle;
      else high = middle - 1;
    }
    return low;
  };
  chart.addEventListener("keydown", (event) => {
    const span = view[1] - view[0];
    const keys = { "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), 0: () => move(0, total || 1),
      ArrowLeft: () => move(view[0] - span / 4), ArrowRight: () => move(view[0] + span / 4) };
    if (!keys[event.key]) return;
    keys[event.key]();
    event.preventDefault();
  });
  chart.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.shiftKey) return;
    zoom(event.deltaY > 0 ? 1.25 : 0.8, timeAt(event));
    event.preventDefault();
  }, { passive: false });
  chart.addEventListener("mousemove", (event) => {
    const at = stepAt(timeAt(event));
    const more = steps.ops[at] > 1 ? ` and ${steps.ops[at] - 1} ops more` : "";
    said.textContent = `${shortOp(textOf(steps.name[at]))}${more} ${placeText(steps.place[at])}, `
      + `${secondsText(steps.time[at] * 1e-12)}, ${bytesText(steps.live[at])} live`;
  });
  chart.addEventListener("click", (event) => {
    const at = stepAt(timeAt(event));
    if (steps.collective[at] >= 0) openCollective(data.cost.collectives[steps.collective[at]]);
    else {
      const top = placeOf(steps.place[at]);
      const target = top && document.getElementById(lineId(top[0], top[1]));
      if (target) showLine(target);
    }
  });
  draw();
  const button = (label, act, name) => element("button", { type: "button", click: act, "aria-label": name }, label);
  return section("timeline", "Predicted timeline and memory",
    element("p", { class: "quiet" }, "The step in the order of the program: ops, and collectives while the device waits for them. "
      + "Ctrl and wheel, or + and -, zoom."),
    element("p", { class: "tools" }, button("+", () => zoom(0.5), "zoom in"), button("−", () => zoom(2), "zoom out"),
      button("←", () => move(view[0] - (view[1] - view[0]) / 4), "earlier"),
      button("→", () => move(view[0] + (view[1] - view[0]) / 4), "later"),
      button("whole", () => move(0, total || 1), "the whole step")),
    element("div", { class: "scroll" }, chart), said, liveTable());
}

function liveTable() {
  if (!data.cost.live.length) return null;
  const rows = data.cost.live.map(([name, op, type, short, bytes, place]) => ({ name, op, type, short, bytes, place }));
  return element("details", {}, element("summary", {}, `${countOf(data.cost.num_live, "value")} live at the peak`),
    makeTable({
      name: "Live at the peak", rows,
      search: (row) => ({ text: `${row.name} ${row.op ?? ""} ${row.type} ${row.short}`.toLowerCase(),
        axes: data.meshes.flatMap(([, axes]) => axes.map(([name]) => name)).filter((axis) =>
          row.short.includes(JSON.stringify(axis))) }),
      columns: [
        { name: "value", text: (row) => row.name, kind: "mono" },
        { name: "made by", text: (row) => (row.op ? shortOp(row.op) : "argument") },
        { name: "type", text: (row) => row.type, kind: "mono" },
        { name: "sharding", text: (row) => row.short, kind: "mono" },
        { name: "a device", text: (row) => bytesText(row.bytes), key: (row) => row.bytes, number: true },
        { name: "source", text: (row) => placeText(row.place) },
      ],
    }));
}
