// Tables of arguments, results, values and collectives.

for (const row of data.values) {
  // As result.why takes them.
  const inside = row.function < 0 ? "" : `@${textOf(row.function)} `;
  row.names = row.names.split(" ").map((name) => inside + name);
  row.times = row.names.length;
}
for (const row of [...data.arguments, ...data.results]) row.times = row.count;
const isInserted = (row) => /^(@.* )?%shc_*\d/s.test(row.names[0]);

function valueSearch(row) {
  const axes = shardingOf(row.sharding)?.axes ?? [];
  const stack = stackOf(row.place).map(lineText);
  const words = [...(row.labels ?? []), ...row.names, textOf(row.op ?? -1), textOf(row.type), shortSharding(row.sharding)];
  return { text: [...words, ...stack].join(" ").toLowerCase(), axes, was: row.was };
}

function collectiveSearch(row) {
  row.text ??= [row.kind, ...row.axes, row.cause ?? "", row.from, row.to, placeText(row.place), ...row.ops]
    .join(" ").toLowerCase();
  return [row.text, row.names, row.was];
}

const SIZE_COLUMNS = [
  { name: "sharding", text: (row) => shortSharding(row.sharding), cell: (row) => shardingFact(row.sharding, row.was),
    kind: "mono" },
  { name: "local shape", text: (row) => textOf(row.local), kind: "mono" },
  { name: "bytes a device", text: (row) => bytesText(row.bytes), key: (row) => row.bytes ?? -1, number: true },
];

// Arguments of one kind and sharding are one row, which opens to them, unless something is sought.
function portsSection(id, title, rows) {
  if (!rows.length) return null;
  const groups = new Map();
  for (const row of [...rows].sort((a, b) => KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind))) {
    const key = [row.kind, row.given, row.sharding, row.was].join();
    groups.set(key, [...(groups.get(key) ?? []), row]);
  }
  const isGrouped = groups.size < rows.length;
  const grouped = [...groups.values()].map((members) => (members.length === 1 ? members[0] : { ...members[0], members,
    label: `${members[0].label} and ${members.length - 1} more`, times: members.reduce((sum, row) => sum + row.times, 0),
    bytes: members.reduce((sum, row) => sum + row.bytes * row.times, 0) / members.reduce((sum, row) => sum + row.times, 0) }));
  const open = (row) => (row.members ? openPorts(row) : openValue(row));
  return section(id, title, element("p", { class: "quiet" }, isGrouped ? "Those of one kind and sharding are one row." : "",
    hint("A row opens which device holds what, and where each axis comes from.")), makeTable({
    name: title, rows, unit: "tensor", grouped: isGrouped ? grouped : null, search: valueSearch, open,
    columns: [
      ...(id === "arguments" ? [{ name: "kind", text: (row) => row.kind }] : []),
      { name: "path", text: (row) => row.label, kind: "mono" },
      { name: "tensors", text: (row) => String(row.times), key: (row) => row.times, number: true },
      { name: "type", text: (row) => (row.members ? countOf(new Set(row.members.map((one) => one.type)).size, "type")
        : textOf(row.type)), kind: "mono" },
      { name: "annotated", text: (row) => (row.given < 0 ? "none" : shortSharding(row.given)), kind: "mono" },
      SIZE_COLUMNS[0],
      { name: "local shape", text: (row) => (row.members ? countOf(new Set(row.members.map((one) => one.local)).size, "shape")
        : textOf(row.local)), kind: "mono" },
      { name: "bytes a device", text: (row) => bytesText(row.bytes === null ? null : row.bytes * row.times),
        key: (row) => (row.bytes ?? -1) * row.times, number: true },
    ],
  }));
}

function openPorts({ kind, sharding, members }) {
  openPanel(`${kind || "results"} ${shortSharding(sharding)}`, element("ul", { class: "rows" }, ...members.map((row) =>
    element("li", {}, element("button", { type: "button", class: "link", click: () => openValue(row) }, row.label),
      ` ×${row.times} ${textOf(row.type)}, ${bytesText(row.bytes)} each`))));
}

function valuesSection() {
  const note = data.left_out ? element("p", { class: "quiet" },
    `the first ones; ${countOf(data.left_out, "later value")} left out here: result.values() has them`) : null;
  return section("values", "Values", note, makeTable({
    // What passes inserted comes last.
    name: "Values", rows: data.values.filter((row) => row.op >= 0).sort((a, b) => isInserted(a) - isInserted(b)), search: valueSearch, open: openValue,
    columns: [
      { name: "value", text: (row) => namesText(row.names), kind: "mono" },
      { name: "op", text: (row) => shortOp(textOf(row.op)) },
      { name: "type", text: (row) => textOf(row.type), kind: "mono" },
      ...SIZE_COLUMNS,
      { name: "source", text: (row) => placeText(row.place) },
    ],
  }));
}

function collectivesSection() {
  if (!data.cost) return null;
  if (!data.cost.collectives.length) return section("collectives", "Collectives", element("p", {}, "No device sends anything."));
  const hasParts = data.cost.collectives.some(({ axes }) => axes.some((axis) => axis.includes(":(")));
  const note = "Time and bytes are those of all runs, at the peak rate of the links; a device sends the bytes."
    + (hasParts ? " x:(2)4 is a part of the axis x: that of size 4 behind a major part of size 2." : "");
  return section("collectives", "Collectives", element("p", { class: "quiet" }, note, hint("A row opens why it is there.")), makeTable({
    name: "Collectives", rows: data.cost.collectives, open: openCollective, order: { at: 3, descending: true }, first: 20,
    search: (row) => {
      const [text, axes, was] = collectiveSearch(row);
      return { text, axes, was };
    },
    columns: [
      { name: "kind", text: (row) => row.kind },
      { name: "axes", text: (row) => row.axes.join(", "), kind: "mono" },
      { name: "runs", text: (row) => String(row.count), key: (row) => row.count, number: true },
      { name: "time", text: (row) => secondsText(row.seconds), key: (row) => row.seconds, number: true },
      { name: "sent", text: (row) => bytesText(row.sent), key: (row) => row.sent, number: true },
      { name: "from → to", text: (row) => (row.from === row.to ? row.from : `${row.from} → ${row.to}`), kind: "mono" },
      { name: "because of", text: (row) => shortOp(row.cause ?? "") },
      { name: "source", text: (row) => placeText(row.place) },
    ],
  }));
}
