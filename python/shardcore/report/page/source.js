// The user's source, or the text of the program, with shardings and collectives beside each line.

const MAX_CHIPS = 4;
// Less is not told.
const LEAST_SECONDS = 5e-10;
const MAX_OPEN_LINES = 800;
// Functions that take less of the step than this are closed.
const OPEN_SHARE = 0.01;

const lineId = (file, line) => `line-${file}:${line}`;
// The ids of the lines that the page shows.
const shownLines = new Set(data.files.flatMap(({ name, blocks }) => blocks.flatMap(({ first, lines, numbers }) =>
  lines.map((_, at) => lineId(name, numbers?.[at] ?? first + at)))));

function showLine(id) {
  const target = document.getElementById(id);
  for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  target.scrollIntoView({ block: "center" });
  for (const old of document.querySelectorAll(".marked")) old.classList.remove("marked");
  target.classList.add("marked");
  target.focus({ preventScroll: true });
}

// Rows, collectives and time of each line.
function byLine() {
  const lines = new Map();
  const of = (place) => {
    const top = placeOf(place);
    if (!top) return null;
    const key = lineId(top[0], top[1]);
    if (!lines.has(key)) lines.set(key, { rows: [], collectives: [], diagnostics: [], seconds: 0 });
    return lines.get(key);
  };
  for (const row of data.values) if (row.op >= 0) of(row.place)?.rows.push(row);
  for (const row of data.cost?.collectives ?? []) of(row.place)?.collectives.push(row);
  for (const row of data.diagnostics) of(row.place)?.diagnostics.push(row);
  for (const [place, seconds] of data.cost?.times ?? []) {
    const line = of(place);
    if (line) line.seconds += seconds;
  }
  return lines;
}

const isWhole = (row) => row.was === SAME && shortSharding(row.sharding) === shortSharding(-1);

const NOTHING = { rows: [], collectives: [], diagnostics: [], seconds: 0 };

function sourceSection() {
  const notes = byLine();
  const blocks = [];
  let open = 0;
  for (const file of data.files) {
    for (const block of file.blocks) {
      const lines = block.lines.map((code, at) => {
        const number = block.numbers?.[at] ?? block.first + at;
        const id = lineId(file.name, number);
        return { id, number, code, isBare: Boolean(block.numbers), ...(notes.get(id) ?? NOTHING) };
      });
      open += lines.length;
      const title = block.numbers
        ? `${lineText([file.name, 0])}, which ${file.is_read ? "has no such lines" : "was not found"}`
        : `${block.name ? `${block.name} ` : ""}${lineText([file.name, block.first])}`;
      blocks.push(sourceBlock(title, lines, open <= MAX_OPEN_LINES));
    }
  }
  for (const run of data.listing?.runs ?? []) {
    const lines = run.lines.map((code, at) => {
      const row = run.rows[at] < 0 ? null : data.values[run.rows[at]];
      const before = row ? data.cost?.before[run.rows[at]] ?? [] : [];
      const collectives = before.map((number) => data.cost.collectives[number]);
      return { id: null, number: run.first + at, code, ...NOTHING, rows: row ? [row] : [], collectives };
    });
    open += lines.length;
    const again = run.times ? `, and ${countOf(run.times, "time")} more alike` : "";
    blocks.push(sourceBlock(`lines ${run.first} to ${run.first + lines.length - 1}${again}`, lines,
      open <= MAX_OPEN_LINES));
  }
  const last = data.listing?.runs.at(-1);
  const end = last ? last.first + last.lines.length * (1 + (last.times ?? 0)) - 1 : 0;
  if (last && end < data.listing.num_lines) {
    const left = `lines ${end + 1} to ${data.listing.num_lines} are left out here: print(result.module) has them`;
    blocks.push(element("p", { class: "quiet" }, left));
  }
  if (!blocks.length) blocks.push(element("p", { class: "quiet" }, "no line of a source is known"));
  const legend = data.cost ? element("p", { class: "quiet" }, "Beside each line: its part of the step, the ",
    element("span", { class: "chip" }, "shardings"), " of its values with how many values have them, and its ",
    element("span", { class: "chip moved" }, "collectives"), " with how often they run and their time.", hint("Each opens.")) : null;
  return section("source", "Source", legend, ...blocks);
}

function sourceBlock(title, lines, canOpen) {
  const seconds = lines.reduce((sum, line) => sum + line.seconds, 0);
  const isOpen = canOpen && (!data.cost?.times.length || lines.some((line) => line.diagnostics.length)
    || seconds >= OPEN_SHARE * data.cost.step || lines.every((line) => line.id === null));
  const collectives = lines.reduce((sum, line) => sum + line.collectives.reduce((some, row) => some + row.count, 0), 0);
  const sums = [seconds >= LEAST_SECONDS ? secondsText(seconds) : "", collectives ? countOf(collectives, "collective") : ""];
  const body = element("div", { class: "code" });
  const made = element("details", { class: "block", toggle: fillBody },
    element("summary", {}, element("b", {}, title), ` ${sums.filter(Boolean).join(", ")}`), body);
  // Lines are made when they are looked at, links to them need ids.
  let isFilled = false;
  function fillBody() {
    if (isFilled) return;
    isFilled = true;
    body.append(...lines.map(sourceLine));
  }
  fillBody();
  made.open = isOpen;
  return made;
}

function sourceLine(line) {
  const notes = element("span", { class: "notes" });
  const redraw = () => notes.replaceChildren(...chips(line));
  watchers.push(redraw);
  redraw();
  return element("div", { class: line.isBare ? "line bare" : "line", id: line.id, tabindex: -1 },
    element("span", { class: "number" }, String(line.number)),
    element("code", {}, line.code || " "),
    element("span", { class: "time" }, line.seconds >= LEAST_SECONDS ? secondsText(line.seconds) : ""), notes);
}

// The shardings of a line, each once, with the number of its values; its collectives.
function chips(line) {
  const shardings = new Map();
  for (const row of line.rows) {
    const { text, axes, was } = (row.sought ??= valueSearch(row));
    if (!isSought(text, axes, was)) continue;
    const key = `${shortSharding(row.sharding)} ${row.was}`;
    if (!shardings.has(key)) shardings.set(key, []);
    shardings.get(key).push(row);
  }
  const times = (rows) => rows.reduce((sum, row) => sum + row.times, 0);
  const found = [...shardings.values()].sort((a, b) => isWhole(a[0]) - isWhole(b[0]) || times(b) - times(a));
  const shown = found.slice(0, MAX_CHIPS).map((rows) => {
    const open = () => (rows.length === 1 ? openValue(rows[0]) : openRows(`Line ${line.number}`, rows, []));
    const count = times(rows) > 1 ? ` ×${times(rows)}` : "";
    return element("button", { type: "button", class: isWhole(rows[0]) ? "chip quiet" : "chip", click: open },
      shardingFact(rows[0].sharding, rows[0].was), count);
  });
  const rest = found.slice(MAX_CHIPS).flat();
  if (rest.length) {
    shown.push(element("button", { type: "button", class: "chip quiet",
      click: () => openRows(`Line ${line.number}`, found.flat(), line.collectives) }, `+${found.length - MAX_CHIPS}`));
  }
  const sent = line.collectives.filter((row) => isSought(...collectiveSearch(row)));
  const moved = new Map();
  for (const row of sent) {
    const key = `${row.kind} ${row.axes.join(",")}`;
    const sum = moved.get(key) ?? { rows: [], count: 0, seconds: 0 };
    moved.set(key, { rows: [...sum.rows, row], count: sum.count + row.count, seconds: sum.seconds + row.seconds });
  }
  for (const [key, { rows, count, seconds }] of moved) {
    const open = () => (rows.length === 1 ? openCollective(rows[0]) : openRows(`Line ${line.number}`, [], rows));
    shown.push(element("button", { type: "button", class: "chip moved", click: open },
      `${key} ×${count}, ${secondsText(seconds)}`));
  }
  for (const { code, message } of line.diagnostics) {
    shown.push(element("span", { class: "chip wrong", title: message }, code));
  }
  return shown;
}
