// Tables that can be sorted, and show the rows that are sought.

const FIRST_ROWS = 200;

// `columns`: name, text of a row, key to sort by, whether it is a number. `search`: text and axes of a row.
function makeTable({ columns, rows, search, open, order = null, name, first = FIRST_ROWS, grouped = null }) {
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
    more.hidden = found.length <= limit;
    more.textContent = `show all ${countOf(found.length, "row")}`;
    const folded = found.reduce((sum, row) => sum + (row.times ?? 1), 0);
    const alike = folded > found.length ? `, ${folded.toLocaleString("en")} in all` : "";
    count.textContent = `${countOf(found.length, "row")}${alike}`;
  }

  function makeRow(row) {
    const cells = columns.map((column) => {
      const inside = column.cell ? column.cell(row) : column.text(row);
      return element("td", { class: column.number ? "number" : column.kind ?? null }, inside);
    });
    if (!open) return element("tr", {}, ...cells);
    return element("tr", { tabindex: 0, click: () => open(row), keydown: (event) => rowKey(event, () => open(row)) },
      ...cells);
  }

  watchers.push(() => ((limit = first), draw()));
  window.addEventListener("beforeprint", draw);
  draw();
  return element("div", { class: "table" }, count,
    element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `${name}, scrolls` },
      element("table", { "aria-label": name }, element("thead", {}, element("tr", {}, ...heads)), body)), more);
}

function rowKey(event, open) {
  const row = event.currentTarget;
  const next = { ArrowDown: row.nextElementSibling, ArrowUp: row.previousElementSibling, j: row.nextElementSibling,
    k: row.previousElementSibling }[event.key];
  if (event.key === "Enter" || event.key === " ") open();
  else if (next) next.focus();
  else return;
  event.preventDefault();
}
