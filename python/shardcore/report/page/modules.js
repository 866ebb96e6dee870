// Time and collectives by module: a tree of the scopes that the user's program names, else its functions.

const PASSES = ["forward", "backward", "recomputed"];

const EMPTY = () => ({ seconds: 0, collectives: 0, bytes: 0, layers: 1, passes: new Map(), inner: new Map() });

// The tree of the scopes; each node has the sums of all in it.
function moduleTree() {
  const root = EMPTY();
  for (const { scope, pass, layers, seconds, collectives, bytes } of data.cost.scopes) {
    const path = [root];
    for (const name of scope ? scope.split("/") : ["outside of modules"]) {
      const { inner } = path[path.length - 1];
      if (!inner.has(name)) inner.set(name, EMPTY());
      path.push(inner.get(name));
    }
    for (const node of path) {
      node.seconds += seconds;
      node.collectives += collectives;
      node.bytes += bytes;
      node.passes.set(pass, (node.passes.get(pass) ?? 0) + seconds);
    }
    for (const [at, name] of scope.split("/").entries()) {
      if (name.includes("*")) path[at + 1].layers = Math.max(path[at + 1].layers, layers);
    }
  }
  return root;
}

function modulesSection() {
  if (!data.cost?.scopes.some(({ scope }) => scope)) return functionsSection();
  const root = moduleTree();
  return section("modules", "Modules", ...branches(root, root.seconds, 0));
}

function functionsSection() {
  const notes = byLine();
  const rows = data.files.flatMap(({ name: file, blocks }) => blocks.map(({ name, first, lines }) => {
    const inside = lines.map((_, at) => notes.get(lineId(file, first + at)) ?? NOTHING);
    const sent = inside.flatMap((line) => line.collectives);
    return { name, place: [file, first], seconds: inside.reduce((sum, line) => sum + line.seconds, 0),
      collectives: sent.reduce((sum, row) => sum + row.count, 0), bytes: sent.reduce((sum, row) => sum + row.sent, 0) };
  })).filter(({ name, seconds }) => name && seconds >= LEAST_SECONDS).sort((a, b) => b.seconds - a.seconds);
  if (!rows.length) return null;
  return section("modules", "Modules", element("p", { class: "quiet" },
    "The program names no scopes: these are its functions. jax.named_scope names others."),
  makeTable({
    name: "Modules", rows,
    search: (row) => ({ text: `${row.name} ${lineText(row.place)}`.toLowerCase(), axes: [sought.axis], was: 0 }),
    columns: [
      { name: "function", text: (row) => row.name, kind: "mono" },
      { name: "time", text: (row) => secondsText(row.seconds), key: (row) => row.seconds, number: true },
      { name: "of the step", text: (row) => percent(row.seconds / data.cost.step), key: (row) => row.seconds, number: true },
      { name: "collectives", text: (row) => String(row.collectives), key: (row) => row.collectives, number: true },
      { name: "sent", text: (row) => bytesText(row.bytes), key: (row) => row.bytes, number: true },
      { name: "source", text: (row) => lineText(row.place), cell: (row) => lineLink(row.place) },
    ],
  }));
}

function branches({ inner }, whole, depth) {
  const nodes = [...inner].sort(([, a], [, b]) => b.seconds - a.seconds);
  return nodes.map(([name, node]) => {
    const title = [element("b", { class: "mono" }, name), node.layers > 1 ? ` ×${node.layers}` : "",
      ` ${moduleText(node, whole)}`];
    if (!node.inner.size) return element("div", { class: "module" }, ...title);
    return element("details", { class: "module", open: depth < 1 }, element("summary", {}, ...title),
      ...branches(node, whole, depth + 1));
  });
}

function moduleText({ seconds, collectives, bytes, passes }, whole) {
  const share = whole ? ` (${percent(seconds / whole)})` : "";
  const parts = PASSES.filter((pass) => passes.get(pass)).map((pass) => `${pass} ${secondsText(passes.get(pass))}`);
  const sent = collectives ? [countOf(collectives, "collective"), `${bytesText(bytes)} sent`] : [];
  return [`${secondsText(seconds)}${share}`, ...(parts.length > 1 ? parts : []), ...sent].join(", ");
}
