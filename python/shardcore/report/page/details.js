// The panel at the side: a value, its picture and where its axes come from; a collective; a line.

const MAX_NAMES = 60;
const panel = element("aside", { id: "details", tabindex: -1, role: "dialog", "aria-labelledby": "details-title", hidden: true });
let opener = null;

function openPanel(title, ...children) {
  if (panel.hidden) opener = document.activeElement;
  panel.replaceChildren(
    element("button", { type: "button", class: "close", click: closePanel, "aria-label": "close" }, "×"),
    element("h2", { id: "details-title" }, title), ...children.filter((child) => child !== null));
  panel.hidden = false;
  panel.scrollTop = 0;
  panel.focus({ preventScroll: true });
}

function closePanel() {
  panel.hidden = true;
  if (opener?.isConnected) opener.focus({ preventScroll: true });
}

function facts(pairs) {
  const shown = pairs.filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return element("dl", {}, ...shown.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
}

function shardingFact(number, was) {
  if (was === SAME || was === undefined) return shortSharding(number);
  return element("span", {}, element("del", {}, shortSharding(was)), " → ", element("ins", {}, shortSharding(number)));
}

function openValue(row) {
  const names = row.labels ?? row.names;
  const count = row.count ?? names.length;
  const title = row.label ?? namesText(names);
  openPanel(title,
    facts([
      ["op", textOf(row.op ?? -1)],
      ["function", textOf(row.function ?? -1)],
      ["type", textOf(row.type)],
      ["annotated", row.given === undefined ? "" : shortSharding(row.given)],
      ["sharding", shardingFact(row.sharding, row.was)],
      ["on one device", [textOf(row.local), bytesText(row.bytes)].filter(Boolean).join(", ")],
      ["source", row.place < 0 ? "" : stackLinks(row.place)],
    ]),
    element("h3", {}, "Which device holds what"),
    picture(shardingOf(row.sharding), row.shape),
    element("h3", {}, names.length > 1 ? `Why (of ${names[0]})` : "Why"),
    why(row, names[0]),
    names.length > 1 ? element("details", {}, element("summary", {}, `${countOf(count, "value")} alike`),
      element("p", { class: "names" }, names.slice(0, MAX_NAMES).join(" "),
        count > MAX_NAMES ? ` and ${count - MAX_NAMES} more` : "")) : null);
}

function stackLinks(place) {
  return element("span", {}, ...stackOf(place).flatMap((at, depth) =>
    [depth ? " ← " : "", lineLink(at)]));
}

function lineLink(at) {
  if (!shownLines.has(lineId(at[0], at[1]))) return lineText(at);
  return element("button", { type: "button", class: "link", click: () => showLine(lineId(at[0], at[1])) }, lineText(at));
}

// Where each axis comes from: the steps back to what the user wrote.
function why(row, name) {
  if (!row.why) {
    const asked = `this page has no room for it: result.why(${JSON.stringify(name)}) answers`;
    return element("p", { class: "quiet" }, row.sharding < 0 ? "no axis reached it" : asked);
  }
  if (!row.why.length) {
    return element("p", { class: "quiet" },
      `no dim has an axis; result.why_not(${JSON.stringify(name)}, dim, axis) says why not`);
  }
  return element("ul", { class: "why" }, ...row.why.map(([axis, dim, link]) =>
    element("li", {}, element("b", {}, axis), ` on dim ${dim}`, element("ol", {}, ...chain(link)))));
}

function chain(number) {
  const items = [];
  while (number >= 0) {
    const link = data.links[number];
    const isSource = link.length === 5;
    const before = link[link.length - 1];
    items.push(isSource ? sourceItem(link) : stepItem(link, before));
    number = before;
  }
  return items;
}

function stepItem([, op, line, factor, direction, priority, step], before) {
  const how = [factor ? `factor ${factor}` : "", direction === "both" ? "" : direction,
    factor ? `priority ${priority}, step ${step}` : ""].filter(Boolean);
  const [from] = data.links[before];
  return element("li", {}, `${shortOp(textOf(op))} `, ...textPlace(line), how.length ? ` (${how.join(", ")})` : "",
    ` from ${from}`);
}

function sourceItem([written, kind, location, given]) {
  return element("li", { class: "origin" }, element("b", {}, written), ` ${withoutMesh(given)}, ${ORIGINS[kind] ?? kind} `,
    ...textPlace(location));
}

const ORIGINS = { argument: "an annotated argument", result: "an annotated result",
  constraint: "a sharding constraint", group: "a sharding group", op: "an annotated op",
  manual: "a manual computation" };

// A place that is a text, `file:line:column`.
function textPlace(number) {
  const text = textOf(number);
  const match = /^(.*?):(\d+)(?::\d+)?$/.exec(text);
  return match ? [lineLink([match[1], Number(match[2])])] : [text];
}

function openCollective(row) {
  openPanel(`${row.kind} ${row.axes.join(", ")}`,
    facts([
      ["runs", String(row.count)],
      ["time of all runs", secondsText(row.seconds)],
      ["whole array", bytesText(row.bytes)],
      ["a device sends", bytesText(row.sent)],
      ["because of", row.cause ?? ""],
      ["from", row.from],
      ["to", row.to],
      ["source", row.place < 0 ? "" : stackLinks(row.place)],
    ]),
    ...collectiveWhy(row),
    element("p", { class: "names" }, row.ops.slice(0, MAX_NAMES).join(" ")));
}

// The tensors that disagree, with what decided their shardings, and the edit that removes the collective.
function collectiveWhy(row) {
  if (!row.why) return [element("p", { class: "quiet" }, "why: shardcore why FILE --collectives N")];
  const sides = row.why.sides.map(([value, sharding, axis, dim, link]) => {
    const short = withoutMesh(sharding);
    const what = axis ? [" has ", element("b", {}, axis), ` on dim ${dim}`] : [" keeps other axes away"];
    return element("li", {}, `${value} ${short}`, ...what, element("ol", {}, ...chain(link)));
  });
  const { edit } = row.why;
  const found = edit ? [element("p", { class: "edit" }, element("code", {}, edit.text),
    `: ${edit.is_replaced ? "another collective takes its place" : "it goes"}`
    + ` (step ${signed(edit.seconds, secondsText)}, peak ${signed(edit.peak_bytes, bytesText)})`)]
    : [];
  return [element("h3", {}, "Why"), sides.length ? element("ul", { class: "why" }, ...sides)
    : element("p", { class: "quiet" }, "the program itself has it, or no annotation asks for it"), ...found];
}

function openRows(title, rows, collectives) {
  openPanel(title, ...(rows.length ? [element("ul", { class: "rows" }, ...rows.map((row) =>
    element("li", {}, element("button", { type: "button", class: "link", click: () => openValue(row) },
      `${shortOp(textOf(row.op))} ${namesText(row.names)}`), ` ${textOf(row.type)} `,
    shardingFact(row.sharding, row.was))))] : []),
  ...(collectives.length ? [element("h3", {}, "Collectives"), element("ul", { class: "rows" },
    ...collectives.map((row) => element("li", {}, element("button",
      { type: "button", class: "link", click: () => openCollective(row) }, collectiveText(row)))))] : []));
}

const collectiveText = (row) => `${row.kind} ${row.axes.join(",")} ×${row.count}, ${secondsText(row.seconds)}`;
