// The head of the page, the search, the keyboard.

function card(title, value, note) {
  return element("div", { class: "card" }, element("span", {}, title), element("b", {}, value), element("small", {}, note));
}

function overview() {
  const { before, after } = data.summary;
  const cards = [card("sharded values", `${after.sharded_values} of ${after.values}`,
    `annotated: ${before.sharded_values}`)];
  if (data.cost) {
    const { cost } = data;
    const sent = cost.collectives.reduce((sum, row) => sum + row.count, 0);
    cards.push(
      card("predicted step", secondsText(cost.step), `90%: ${secondsText(cost.low)} to ${secondsText(cost.upper)}`),
      card("compute", secondsText(cost.compute), `${countText(cost.flops)}FLOPs`),
      card("collectives", secondsText(cost.comm), countOf(sent, "run")),
      card("peak memory", bytesText(cost.peak_bytes),
        `${cost.fits ? "fits" : "DOES NOT FIT"} ${cost.hardware}, ${bytesText(cost.hbm_bytes)}`));
  }
  const notes = data.cost ? [`one device of ${data.cost.hardware}, policy ${data.cost.policy}`, ...data.cost.notes]
    : data.no_cost ? [`its cost is not known: ${data.no_cost}`] : [];
  const [compute, links] = data.cost?.not_timed ?? [0, 0];
  notes.push(`sharded as by the Shardy of jaxlib ${data.summary.shardy}`);
  if (compute) notes.push(`the work of ${countOf(compute, "op")} is not known`);
  if (links) notes.push(`the time of ${countOf(links, "exchange")} is not known`);
  return element("div", {}, element("div", { class: "cards" }, ...cards), element("p", { class: "quiet" }, notes.join("; ")));
}

function axisButtons() {
  const axes = data.summary.after.axes.map(({ name, size, values }) => ({ name, size, values }));
  const buttons = axes.map(({ name, size, values }) => element("button", { type: "button", "aria-pressed": "false",
    title: `${countOf(values, "value")} sharded over it`, click: (event) => {
      sought.axis = sought.axis === name ? "" : name;
      for (const other of buttons) other.setAttribute("aria-pressed", "false");
      event.currentTarget.setAttribute("aria-pressed", String(sought.axis === name));
      soughtChanged();
    } }, `${name}=${size}`));
  return buttons;
}

function tools(sections) {
  let wait = 0;
  const search = element("input", { type: "search", id: "search", placeholder: "search: name, op, line, sharding  ( / )",
    "aria-label": "search", input: () => {
      clearTimeout(wait);
      wait = setTimeout(() => {
        sought.query = search.value.trim().toLowerCase();
        soughtChanged();
      }, 80);
    } });
  const changed = data.changes ? element("label", {}, element("input", { type: "checkbox", id: "changed",
    change: (event) => {
      sought.changed = event.currentTarget.checked;
      soughtChanged();
    } }), "changed only") : null;
  const links = sections.map((made) => element("a", { href: `#${made.id}` }, made.querySelector("h2").textContent));
  return element("nav", { "aria-label": "page" }, search, element("span", { class: "axes", role: "group",
    "aria-label": "filter by axis" }, ...axisButtons()), changed, element("span", { class: "links" }, ...links));
}

document.addEventListener("keydown", (event) => {
  const isTyping = ["INPUT", "TEXTAREA"].includes(event.target.tagName);
  if (event.key === "/" && !isTyping) {
    document.getElementById("search").focus();
    event.preventDefault();
  } else if (event.key === "Escape") {
    if (!panel.hidden) closePanel();
    else if (isTyping) event.target.blur();
  }
});
window.addEventListener("beforeprint", () => {
  for (const block of document.querySelectorAll("details")) block.open = true;
});

const sections = [diagnosticsSection(), changesSection(), sourceSection(), portsSection("arguments", "Arguments", data.arguments),
  portsSection("results", "Results", data.results), modulesSection(), collectivesSection(), timelineSection(), graphSection(),
  framesSection(), valuesSection()]
  .filter((made) => made !== null);
document.body.append(
  element("header", {}, element("h1", {}, data.title), overview()),
  tools(sections),
  element("main", {}, ...sections), panel);
