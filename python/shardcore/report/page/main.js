// The head of the page, the search, the keyboard.

function card(title, value, note, kind = "") {
  return element("div", { class: `card ${kind}` }, element("span", {}, title), element("b", {}, value), element("small", {}, note));
}

// What the other result has, where there is one.
function wasText(name, format) {
  const row = data.changes?.totals?.find(([one]) => one === name);
  return row && row[1] !== row[2] ? `; before: ${format(row[1])}` : "";
}

const percent = (share) => (share && share < 1e-3 ? "< 0.1 %" : `${Number((100 * share).toPrecision(3))} %`);

function overview() {
  const { before, after } = data.summary;
  const { cost } = data;
  const cards = [];
  if (cost) {
    const sent = cost.collectives.reduce((sum, row) => sum + row.count, 0);
    cards.push(
      card("memory", cost.fits ? "fits" : "DOES NOT FIT", `${bytesText(cost.peak_bytes)} at the peak of `
        + `${bytesText(cost.hbm_bytes)}, ${cost.hardware}${wasText("peak_bytes", bytesText)}`, cost.fits ? "good" : "bad"),
      card("predicted step", secondsText(cost.step), `90 %: ${secondsText(cost.low)} to ${secondsText(cost.upper)}`
        + wasText("step_seconds", secondsText)),
      card("MFU", percent(cost.mfu), `HFU ${percent(cost.hfu)}`
        + (cost.tokens ? `, ${countText(cost.tokens)} tokens/s` : "")),
      card("compute", secondsText(cost.compute), `${countText(cost.flops)}FLOPs${wasText("compute_seconds", secondsText)}`),
      card("collectives", secondsText(cost.comm), `${secondsText(cost.exposed)} exposed, ${countOf(sent, "run")}`
        + wasText("comm_seconds", secondsText)));
  }
  cards.push(card("sharded values", `${after.sharded_values} of ${after.values}`, `annotated: ${before.sharded_values}`));
  const notes = cost ? [`one device of ${cost.hardware}, policy ${cost.policy}`, `the interval is ${cost.confidence}`, ...cost.notes]
    : [`its cost is not known: ${data.no_cost}`];
  const [compute, links] = cost?.not_timed ?? [0, 0];
  notes.push(`sharded as by the Shardy of jaxlib ${data.summary.shardy}`);
  if (compute) notes.push(`the work of ${countOf(compute, "op")} is not known`);
  if (links) notes.push(`the time of ${countOf(links, "exchange")} is not known`);
  return element("div", {}, element("div", { class: "cards" }, ...cards),
    element("p", { class: "quiet" }, notes.join("; ")), bestChanges());
}

// The changes worth most, each of which was tried by itself.
function bestChanges() {
  if (!data.cost?.tried) return null;
  const { best, tried, step, peak_bytes } = data.cost;
  const said = ({ target, sharding, count, place, line }) => line
    ? ["write ", element("code", {}, line), " at ", stackLinks(place)]
    : ["annotate ", element("code", {}, target),
      place < 0 ? null : element("span", {}, ", the constraint of ", stackLinks(place), ","), count > 1 ? ` ×${count} with ` : " with ",
      element("code", {}, sharding)];
  const found = best.map(({ step_seconds, peak_bytes: more, wire_bytes, fits, ...edit }) =>
    element("li", {}, ...said(edit), element("div", { class: "quiet" },
        [`step ${signed(step_seconds, secondsText)} (${secondsText(step + step_seconds)})`,
          `peak ${signed(more, bytesText)} (${bytesText(peak_bytes + more)}, ${fits ? "fits" : "does not fit"})`,
          `sent ${signed(wire_bytes, bytesText)}`].join(", "))));
  const text = best.length ? `each alone, of ${countOf(tried, "edit")} tried`
    : `none of ${countOf(tried, "edit")} tried makes the step 1 % shorter${data.cost.fits ? "" : " or the peak lower"}; shardcore plan searches further`;
  return element("section", { id: "best", "aria-labelledby": "best-title" }, element("h2", { id: "best-title" }, "Changes worth most"),
    found.length ? element("ol", { class: "best" }, ...found) : null, element("p", { class: "quiet" }, text));
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

const sections = [diagnosticsSection(), changesSection(), sourceSection(), memorySection(), collectivesSection(), portsSection("arguments", "Arguments", data.arguments),
  portsSection("results", "Results", data.results), modulesSection(), timelineSection(), graphSection(),
  framesSection(), valuesSection()]
  .filter((made) => made !== null);
document.body.append(
  element("header", {}, element("h1", {}, data.title), overview()),
  tools(sections),
  element("main", {}, ...sections), panel);
