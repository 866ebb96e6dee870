// What changed from another result, and what a person should look at.

const TOTALS = { step_seconds: ["step", secondsText], step_seconds_lower: ["step, at least", secondsText],
  step_seconds_upper: ["step, at most (90 %)", secondsText], compute_seconds: ["compute at the peak", secondsText],
  comm_seconds: ["collectives at the peak", secondsText], flops: ["work", flopsText], exposed_seconds: ["waiting for collectives", secondsText],
  mfu: ["MFU", percent], hbm_bytes: ["bytes moved", bytesText],
  argument_bytes: ["arguments", bytesText], output_bytes: ["outputs", bytesText], peak_bytes: ["peak memory", bytesText] };
// More of these is better.
const GAINS = ["mfu"];

function changesSection() {
  const changes = data.changes;
  if (!changes) return null;
  const changed = [...data.arguments, ...data.results, ...data.values].filter((row) => row.was !== SAME);
  const parts = [element("p", { class: "quiet" }, `Before: ${baseName(changes.title)}. ${countOf(changed.reduce((sum, row) => sum + row.times, 0),
    "sharding")} changed; they are marked in every table, and "changed only" shows just these.`)];
  if (changes.totals) {
    parts.push(element("div", { class: "scroll" }, element("table", { "aria-label": "Totals" },
      element("thead", {}, element("tr", {}, ...["total", "before", "after", "change"].map((name, at) =>
        element("th", { scope: "col", class: at ? "number" : null }, name)))),
      element("tbody", {}, ...changes.totals.map(([name, before, after]) => {
        const [title, format] = TOTALS[name] ?? [name, countText];
        const sign = after > before ? "+" : after < before ? "−" : "";
        return element("tr", {}, element("th", { scope: "row" }, title), element("td", { class: "number" }, format(before)),
          element("td", { class: "number" }, format(after)),
          element("td", { class: `number ${!sign ? "" : (sign === "+") === GAINS.includes(name) ? "less" : "more"}` },
            sign ? `${sign}${format(Math.abs(after - before))}` : "="));
      })))));
    const rows = changes.lines.map(([place, a, b, c, d, kinds]) => ({ place, before: a + c, after: b + d, kinds }));
    if (rows.length) parts.push(element("h3", {}, "By line"), makeTable({
      name: "Changes by line", rows, first: 12, search: (row) => ({ text: row.place.toLowerCase(), axes: [sought.axis], was: 0 }),
      columns: [
        { name: "source", text: (row) => row.place },
        { name: "before", text: (row) => secondsText(row.before), key: (row) => row.before, number: true },
        { name: "after", text: (row) => secondsText(row.after), key: (row) => row.after, number: true },
        { name: "collectives", text: (row) => Object.entries(row.kinds).map(([kind, [was, now]]) =>
          `${kind} ${was} → ${now}`).join(", ") },
      ],
    }));
  }
  return section("changes", "Before and after", ...parts);
}

function diagnosticsSection() {
  if (!data.diagnostics.length) return null;
  return section("diagnostics", "Diagnostics", element("ul", { class: "rows" }, ...data.diagnostics.map((row) =>
    element("li", {}, element("span", { class: `chip ${row.severity === "error" ? "wrong" : "moved"}` }, row.code),
      ` ${row.message} `, row.place < 0 ? "" : stackLinks(row.place),
      row.hint ? element("div", { class: "quiet" }, row.hint) : null,
      followsText(row.follows ?? [])))));
}

function followsText(rows) {
  if (!rows.length) return null;
  const lines = rows.map((each) => element("div", { class: "quiet" },
    `${each.code}${each.location ? ` at ${each.location}` : ""}: ${each.message}`));
  const title = `${rows.length} warning${rows.length > 1 ? "s" : ""} that follow${rows.length > 1 ? "" : "s"} from it`;
  return element("details", {}, element("summary", {}, title), ...lines);
}
