// The head of the page, the search, the keyboard.

function card(title, value, note, kind = "") {
  return element("div", { class: `card ${kind}` }, element("span", {}, title), element("b", {}, value), element("small", {}, note));
}

// What the other result has, where there is one.
function wasText(name, format) {
  const row = data.changes?.totals?.find(([one]) => one === name);
  return row && row[1] !== row[2] ? `before: ${format(row[1])}` : "";
}

// What the page is about: mesh, devices, chip.
function subject() {
  const meshes = data.meshes.map(([, axes]) => {
    const devices = axes.reduce((product, [, size]) => product * size, 1);
    return `${axes.map(([name, size]) => `${name}=${size}`).join(", ") || "no axes"} (${countOf(devices, "device")})`;
  });
  const chip = data.cost ? `predicted for one device of ${data.cost.hardware}, policy ${data.cost.policy}` : `its cost is not known: ${data.no_cost}`;
  return [meshes.length ? `${meshes.length > 1 ? "meshes" : "mesh"} ${meshes.join(" and ")}` : "no mesh", chip,
    `sharded as by the Shardy of jaxlib ${data.summary.shardy}`].join("; ");
}

function overview() {
  const { cost } = data;
  if (!cost) return element("div", {}, element("p", { class: "quiet" }, sharded()));
  const runs = cost.collectives.reduce((sum, row) => sum + row.count, 0);
  const computing = Math.max(cost.step - cost.exposed - cost.copied, 0);
  const ofStep = (seconds) => (cost.step ? `${percent(seconds / cost.step)} of it` : "");
  const note = (...texts) => texts.filter(Boolean).join("; ");
  const cards = [
    card("memory", cost.fits ? "fits" : "does not fit", note(`peak ${bytesText(cost.peak_bytes)} of ${bytesText(cost.hbm_bytes)}`,
      wasText("peak_bytes", bytesText)), cost.fits ? "good" : "bad"),
    card("predicted step", secondsText(cost.step), note(`90 % of steps: ${secondsText(cost.low)} to ${secondsText(cost.upper)}`,
      wasText("step_seconds", secondsText))),
    card("MFU", percent(cost.mfu), note(`HFU ${percent(cost.hfu)}`, rateText(cost), wasText("mfu", percent))),
    card("computing", secondsText(computing), note(ofStep(computing), `${secondsText(cost.compute)} at the chip's peak`,
      flopsText(cost.flops))),
    card("waiting for collectives", secondsText(cost.exposed), note(ofStep(cost.exposed),
      `${countOf(runs, "run")}, ${secondsText(cost.comm)} at the links' peak`, wasText("exposed_seconds", secondsText))),
    ...(cost.copied ? [card("waiting for the host", secondsText(cost.copied), ofStep(cost.copied))] : []),
  ];
  const notes = [`Where the interval comes from: ${cost.confidence}`, ...cost.notes, sharded()];
  if (cost.counted_in) notes.push(`${cost.tokens ? "tokens" : "examples"} are counted in ${cost.counted_in}`);
  const [compute, links] = cost.not_timed;
  if (compute) notes.push(`the work of ${countOf(compute, "op")} is not known`);
  if (links) notes.push(`the time of ${countOf(links, "exchange")} is not known`);
  return element("div", {}, element("div", { class: "cards" }, ...cards),
    element("p", { class: "quiet" }, notes.join("; ")), bestChanges());
}

function rateText({ tokens, examples, hfu }) {
  if (!tokens && !examples) return hfu ? "tokens/s unknown without --tokens" : "";
  return `${countText(tokens ?? examples)} ${tokens ? "tokens" : "examples"}/s`;
}

function sharded() {
  const { before, after } = data.summary;
  return `${after.sharded_values.toLocaleString("en")} of ${countOf(after.values, "value")} are sharded, ${before.sharded_values.toLocaleString("en")} by annotations`;
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
  for (const block of document.querySelectorAll("details:not(#live)")) block.open = true;
});

const sections = [diagnosticsSection(), changesSection(), sourceSection(), memorySection(), collectivesSection(), portsSection("arguments", "Arguments", data.arguments),
  portsSection("results", "Results", data.results), modulesSection(), timelineSection(), graphSection(), valuesSection()]
  .filter((made) => made !== null);
document.body.append(
  element("a", { class: "skip", href: "#main" }, "to the sections"),
  element("header", {}, element("h1", { title: data.title }, baseName(data.title)), element("p", { class: "quiet" }, subject()), overview()),
  tools(sections),
  element("main", { id: "main", tabindex: -1 }, ...sections), panel);
