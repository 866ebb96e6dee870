// Tables of arguments, results, values and collectives.

for (const row of data.values) {
  // As result.why takes them.
  const inside = row.function < 0 ? "" : `@${textOf(row.function)} `;
  row.names = row.names.split(" ").map((name) => inside + name);
  row.times = row.names.length;
}
for (const row of [...data.arguments, ...data.results]) row.times = row.names.length;

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
  { name: "local", text: (row) => textOf(row.local), kind: "mono" },
  { name: "a device", text: (row) => bytesText(row.bytes), key: (row) => row.bytes ?? -1, number: true },
];

function portsSection(id, title, rows) {
  if (!rows.length) return null;
  return section(id, title, makeTable({
    name: title, rows, search: valueSearch, open: openValue,
    columns: [
      { name: "path", text: (row) => row.label, kind: "mono" },
      { name: "count", text: (row) => String(row.times), key: (row) => row.times, number: true },
      { name: "type", text: (row) => textOf(row.type), kind: "mono" },
      { name: "annotated", text: (row) => (row.given < 0 ? "" : shortSharding(row.given)), kind: "mono" },
      ...SIZE_COLUMNS,
    ],
  }));
}

function valuesSection() {
  return section("values", "Values", makeTable({
    name: "Values", rows: data.values.filter((row) => row.op >= 0), search: valueSearch, open: openValue,
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
  return section("collectives", "Collectives", makeTable({
    name: "Collectives", rows: data.cost.collectives, open: openCollective, order: { at: 3, descending: true },
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
      { name: "from → to", text: (row) => `${row.from} → ${row.to}`, kind: "mono" },
      { name: "because of", text: (row) => shortOp(row.cause ?? "") },
      { name: "source", text: (row) => placeText(row.place) },
    ],
  }));
}
