// Tables that can be sorted, and show the rows that are sought.

const FIRST_ROWS = 40;

// `columns`: name, text of a row, key to sort by, whether it is a number; the first one names the row. `search`: text
// and axes of a row; `open`: shows a row in the panel; `title`: what is above the table, if not the heading of a section;
// `unit`: what a row stands for several of.
function makeTable({ columns, rows, search, open, order = null, name, title = null, unit = "value", first = FIRST_ROWS,
  grouped = null }) {
  let sorted = order;
  let limit = first;
  const body = element("tbody");
  const more = element("button", { class: "more", type: "button", click: () => ((limit = Infinity), draw()) });
  const count = element("p", { class: "count", role: "status" });
  const heads = columns.map((column, at) =>
    element("th", { scope: "col", class: column.number ? "number" : null },
      element("button", { type: "button", click: () => sortBy(at) }, column.name)));

  function sortBy(at) {
    const descending = sorted && sorted.at === at ? !sorted.descending : Boolean(columns[at].number);
    sorted = { at, descending };
    draw();
  }

  function shown() {
    const isSeeking = sought.query || sought.axis || sought.changed;
    const found = (grouped && !isSeeking ? grouped : rows).filter((row) => {
      const { text, axes, was } = (row.sought ??= search(row));
      return isSought(text, axes, was);
    });
    if (!sorted) return found;
    const key = columns[sorted.at].key ?? columns[sorted.at].text;
    const sign = sorted.descending ? -1 : 1;
    const keyed = found.map((row) => [key(row), row]);
    keyed.sort(([a], [b]) => sign * (a < b ? -1 : a > b ? 1 : 0));
    return keyed.map(([, row]) => row);
  }

  function draw() {
    const found = shown();
    heads.forEach((head, at) => {
      const direction = sorted?.at === at ? (sorted.descending ? "descending" : "ascending") : "none";
      head.setAttribute("aria-sort", direction);
    });
    body.replaceChildren(...found.slice(0, limit).map(makeRow));
    if (open) body.firstChild?.setAttribute("tabindex", 0);
    more.hidden = found.length <= limit;
    more.textContent = `show all ${countOf(found.length, "row")}`;
    const folded = found.reduce((sum, row) => sum + (row.times ?? 1), 0);
    const part = found.length > limit ? `the first ${limit} of ` : "";
    const alike = folded > found.length ? `, ${countOf(folded, unit)}` : "";
    count.textContent = `${title ? `${title}: ` : ""}${part}${countOf(found.length, "row")}${alike}`;
  }

  function makeRow(row) {
    const cells = columns.map((column, at) => {
      const inside = column.cell ? column.cell(row) : column.text(row);
      return element(at ? "td" : "th", { scope: at ? null : "row", class: column.number ? "number" : column.kind ?? null }, inside);
    });
    if (!open) return element("tr", {}, ...cells);
    // One row of a table is in the order of Tab, arrows lead to the others.
    return element("tr", { tabindex: -1, "aria-haspopup": "dialog", click: () => open(row),
      keydown: (event) => rowKey(event, () => open(row)), focus: (event) => {
        for (const other of body.children) other.setAttribute("tabindex", other === event.currentTarget ? 0 : -1);
      } }, ...cells);
  }

  watchers.push(() => ((limit = first), draw()));
  draw();
  return element("div", { class: "table" }, count,
    element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `${name}, scrolls` },
      element("table", { "aria-label": name }, element("thead", {}, element("tr", {}, ...heads)), body)), more);
}

function rowKey(event, open) {
  const row = event.currentTarget;
  const next = { ArrowDown: row.nextElementSibling, ArrowUp: row.previousElementSibling, j: row.nextElementSibling,
    k: row.previousElementSibling, Home: row.parentElement.firstChild, End: row.parentElement.lastChild }[event.key];
  if (event.key === "Enter" || event.key === " ") open();
  else if (next) next.focus();
  else return;
  event.preventDefault();
}
