// The predicted timeline and the memory over it. Pieces follow each other in the order of the program, and add up to the step.

const LANE = 22;
const MEMORY = 120;
const MIN_PIXELS = 0.5;
// How far a move of the cursor goes at least, in pixels.
const MOVE = 3;

function timelineSection() {
  if (!data.cost?.steps.time.length) return null;
  const { steps } = data.cost;
  const starts = [];
  let total = 0;
  for (const time of steps.time) {
    starts.push(total);
    total += time;
  }
  // Only links that the device waits for have a lane.
  const used = data.cost.lanes.map((name, lane) => ({ name, lane })).filter(({ lane }) =>
    !lane || steps.lane.some((of, at) => of === lane && steps.time[at]));
  const laneAt = new Map(used.map(({ lane }, at) => [lane, at]));
  const most = Math.max(...steps.live, 1);
  const bottom = used.length * LANE + 20 + MEMORY;
  const height = bottom + 20;
  let view = [0, total || 1];
  let now = 0;
  let left = 0;
  let wide = 1;
  const chart = drawn("svg", { class: "chart", height, role: "img", tabindex: 0,
    "aria-label": "predicted timeline and memory; arrows move, Enter opens, plus and minus zoom, 0 shows the whole step" });
  const said = element("p", { class: "count", role: "status" });
  const cursor = drawn("line", { y1: 0, y2: bottom, class: "cursor" });

  const x = (time) => left + ((time - view[0]) / (view[1] - view[0])) * wide;
  // The first piece that ends at or after a time.
  const pieceAt = (time) => {
    let [low, high] = [0, starts.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (starts[middle] + steps.time[middle] < time) low = middle + 1;
      else high = middle;
    }
    return low;
  };

  function draw() {
    const characters = Math.floor((left - 10) / 6.3);
    const bars = used.flatMap(({ name }, lane) => [
      drawn("text", { x: left - 8, y: lane * LANE + 15, "text-anchor": "end" }, name.length > characters ? drawn("title", {}, name) : null,
        name.length > characters ? `${name.slice(0, characters - 1)}…` : name),
      drawn("line", { x1: left, x2: left + wide, y1: (lane + 1) * LANE, y2: (lane + 1) * LANE, class: "rule" }),
    ]);
    const pending = used.map(() => null);
    const flush = (lane) => {
      const piece = pending[lane];
      pending[lane] = null;
      if (!piece) return;
      const [from, to] = [Math.max(x(piece.start), left), Math.min(x(piece.stop), left + wide)];
      if (to <= from) return;
      bars.push(drawn("rect", { x: from.toFixed(2), y: lane * LANE + 3, width: Math.max(to - from, MIN_PIXELS).toFixed(2),
        height: LANE - 6, class: lane ? "sent" : "compute" }));
    };
    let line = "";
    let last = -1;
    let peak = 0;
    for (let at = pieceAt(view[0]); at < starts.length && starts[at] <= view[1]; at++) {
      const lane = laneAt.get(steps.lane[at]);
      const stop = starts[at] + steps.time[at];
      if (lane !== undefined) {
        const piece = pending[lane];
        // Pieces too small to see are drawn as one.
        if (piece && x(starts[at]) - x(piece.stop) < MIN_PIXELS && x(stop) - x(piece.start) < 2 * MIN_PIXELS) piece.stop = stop;
        else {
          flush(lane);
          pending[lane] = { start: starts[at], stop };
        }
      }
      const pixel = Math.min(Math.max(Math.floor(x(starts[at])), left), left + wide);
      peak = pixel === last ? Math.max(peak, steps.live[at]) : steps.live[at];
      line += `${line ? "L" : "M"}${pixel} ${(bottom - (MEMORY * peak) / most).toFixed(1)}`;
      last = pixel;
    }
    pending.forEach((_, lane) => flush(lane));
    const parts = [...bars];
    if (line) parts.push(drawn("path", { d: `${line}L${left + wide} ${bottom}L${left} ${bottom}Z`, class: "memory" }));
    parts.push(drawn("text", { x: left - 8, y: bottom - MEMORY + 10, "text-anchor": "end" }, bytesText(most)),
      drawn("text", { x: left - 8, y: bottom, "text-anchor": "end" }, "memory"),
      drawn("text", { x: left, y: height - 4, class: "end" }, secondsText(view[0] * 1e-12)),
      drawn("text", { x: left + wide, y: height - 4, "text-anchor": "end", class: "end" }, secondsText(view[1] * 1e-12)), cursor);
    chart.setAttribute("viewBox", `0 0 ${left + wide + 4} ${height}`);
    chart.replaceChildren(...parts);
    mark();
  }

  function mark() {
    const middle = x(starts[now] + steps.time[now] / 2);
    cursor.setAttribute("x1", middle);
    cursor.setAttribute("x2", middle);
    cursor.toggleAttribute("hidden", middle < left || middle > left + wide);
    const more = steps.ops[now] > 1 ? ` and ${steps.ops[now] - 1} ops more` : "";
    said.textContent = `${shortOp(textOf(steps.name[now]))}${more} ${placeText(steps.place[now])}, `
      + `${secondsText(steps.time[now] * 1e-12)} from ${secondsText(starts[now] * 1e-12)} on, ${bytesText(steps.live[now])} live`;
  }
  function zoom(factor, center = Math.min(Math.max(starts[now], view[0]), view[1])) {
    const span = Math.min(Math.max((view[1] - view[0]) * factor, 1), total || 1);
    const share = (center - view[0]) / (view[1] - view[0]);
    move(center - span * share, span);
  }
  function move(start, span = view[1] - view[0]) {
    const from = Math.min(Math.max(start, 0), (total || 1) - span);
    view = [from, from + span];
    draw();
  }
  const whole = () => move(0, total || 1);
  // To the next piece in a direction that is seen to be another.
  function step(by) {
    const from = x(starts[now]);
    do now = Math.min(Math.max(now + by, 0), starts.length - 1);
    while (now > 0 && now < starts.length - 1 && Math.abs(x(starts[now]) - from) < MOVE);
    if (starts[now] < view[0] || starts[now] > view[1]) move(starts[now] - (view[1] - view[0]) / 2);
    else mark();
  }
  function open() {
    if (steps.collective[now] >= 0) openCollective(data.cost.collectives[steps.collective[now]]);
    else {
      const top = placeOf(steps.place[now]);
      if (top && shownLines.has(lineId(top[0], top[1]))) showLine(lineId(top[0], top[1]));
    }
  }
  const timeAt = (event) => view[0] + ((event.clientX - chart.getBoundingClientRect().left - left) / wide) * (view[1] - view[0]);
  chart.addEventListener("keydown", (event) => {
    const keys = { "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), 0: whole, Enter: open,
      ArrowLeft: () => step(-1), ArrowRight: () => step(1) };
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
    now = pieceAt(timeAt(event));
    mark();
  });
  chart.addEventListener("click", open);
  fitted(chart, (width) => {
    const longest = Math.max(...used.map(({ name }) => name.length));
    left = Math.round(Math.min(Math.max(6.3 * longest + 12, 74), 0.3 * width));
    wide = width - left - 4;
    draw();
  });
  const button = (label, act, name) => element("button", { type: "button", click: act, "aria-label": name }, label);
  return section("timeline", "Predicted timeline and memory",
    element("p", { class: "quiet" }, "The step in the order of the program: ops, and by mesh axes the collectives while the device waits "
      + "for them.", hint("A click, or Enter, opens one; arrows move; Ctrl and the wheel, or + and -, zoom.")),
    element("p", { class: "tools" }, button("+", () => zoom(0.5), "zoom in"), button("−", () => zoom(2), "zoom out"),
      button("←", () => move(view[0] - (view[1] - view[0]) / 4), "earlier"),
      button("→", () => move(view[0] + (view[1] - view[0]) / 4), "later"),
      button("whole", whole, "the whole step")), chart, said, liveTable());
}

function liveTable() {
  if (!data.cost.live.length) return null;
  const rows = data.cost.live.map(([name, op, type, short, bytes, place]) => ({ name, op, type, short, bytes, place }));
  return element("details", { id: "live" }, element("summary", {}, `${countOf(data.cost.num_live, "value")} live at the peak`),
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
        { name: "bytes a device", text: (row) => bytesText(row.bytes), key: (row) => row.bytes, number: true },
        { name: "source", text: (row) => placeText(row.place) },
      ],
    }));
}
