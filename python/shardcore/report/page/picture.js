// The blocks of a tensor, and the devices that hold them.

const MAX_DEVICES = 1 << 14;
const MAX_SIDE = 16;
const MAX_GRIDS = 4;

function picture(sharding, shape) {
  if (!sharding?.mesh) return element("p", { class: "quiet" }, "no mesh to draw");
  const devices = sharding.mesh.reduce((product, [, size]) => product * size, 1);
  const counts = sharding.dims.map((axes) => axes.reduce((product, [, , size]) => product * size, 1));
  const blocks = counts.reduce((product, count) => product * count, 1);
  const mesh = sharding.mesh.map(([name, size]) => `${name}=${size}`).join(", ");
  const caption = element("p", {}, `${countOf(blocks, "block")} over ${mesh || "one device"}`);
  if (blocks > 1 && devices % blocks === 0 && devices > blocks) {
    caption.append(`, each on ${countOf(devices / blocks, "device")}`);
  }
  if (devices > MAX_DEVICES) return element("div", {}, caption, element("p", {}, "too many devices to draw"));
  const cut = counts.flatMap((count, dim) => (count > 1 ? [dim] : []));
  const column = cut.length > 1 || cut[0] === counts.length - 1 ? cut[cut.length - 1] ?? null : null;
  const row = cut.length > 1 ? cut[cut.length - 2] : column === null ? cut[0] ?? null : null;
  const outer = cut.slice(0, -2);
  const holders = blockHolders(sharding, devices, counts);
  const grids = product(outer.map((dim) => counts[dim]));
  const drawnGrids = grids.slice(0, MAX_GRIDS).map((at) => {
    const fixed = new Map(outer.map((dim, place) => [dim, at[place]]));
    return grid({ fixed, row, column, counts, shape, holders });
  });
  const left = grids.length > MAX_GRIDS || counts[row] > MAX_SIDE || counts[column] > MAX_SIDE;
  return element("div", { class: "picture" }, caption, ...drawnGrids,
    left ? element("p", { class: "quiet" }, "the first blocks are drawn") : null);
}

// The devices of each block, by the numbers of the block.
function blockHolders({ mesh, dims, devices: ids }, devices, counts) {
  const strides = mesh.map((_, at) => mesh.slice(at + 1).reduce((product, [, size]) => product * size, 1));
  const holders = new Map();
  for (let position = 0; position < devices; position++) {
    const block = dims.map((axes) => axes.reduce((number, [axis, pre, size]) => {
      const total = mesh[axis][1];
      const coordinate = Math.floor(position / strides[axis]) % total;
      return number * size + (Math.floor(coordinate / (total / (pre * size))) % size);
    }, 0));
    const key = block.join();
    if (!holders.has(key)) holders.set(key, []);
    holders.get(key).push(ids ? ids[position] : position);
  }
  holders.number = (block) => block.reduce((number, place, dim) => number * counts[dim] + place, 0);
  return holders;
}

function grid({ fixed, row, column, counts, shape, holders }) {
  const range = (dim) => [...Array(dim === null ? 1 : Math.min(counts[dim], MAX_SIDE)).keys()];
  const head = element("tr", {}, element("th", {}, row === null ? "" : `dim ${row}`),
    ...range(column).map((at) => element("th", {}, elements(column, at, counts, shape))));
  const lines = range(row).map((down) => element("tr", {}, element("th", {}, elements(row, down, counts, shape)),
    ...range(column).map((across) => {
      const block = counts.map((_, dim) => (dim === row ? down : dim === column ? across : fixed.get(dim) ?? 0));
      const hue = Math.round((holders.number(block) * 137.508) % 360);
      return element("td", { style: `--hue: ${hue}` }, ranges(holders.get(block.join()) ?? []));
    })));
  const title = [...fixed].map(([dim, at]) => `dim ${dim} ${elements(dim, at, counts, shape)}`);
  if (column !== null) title.push(`dim ${column} across`);
  return element("table", { class: "grid" }, element("caption", {}, title.join(", ")), head, ...lines);
}

function elements(dim, number, counts, shape) {
  if (dim === null) return "";
  if (!shape || shape[dim] === null) return String(number);
  const step = Math.ceil(shape[dim] / counts[dim]);
  const [start, stop] = [number * step, Math.min((number + 1) * step, shape[dim])];
  return start < stop ? `${start}:${stop}` : "padding";
}

// Device ids as `0-3,8`.
function ranges(ids) {
  const runs = [];
  for (const id of ids) {
    const last = runs[runs.length - 1];
    if (last && id === last[1] + 1) last[1] = id;
    else runs.push([id, id]);
  }
  const shown = runs.slice(0, 6).map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`));
  return shown.join(",") + (runs.length > 6 ? ",…" : "");
}

function product(counts) {
  return counts.reduce((found, count) => found.flatMap((head) => [...Array(count).keys()].map((at) => [...head, at])),
    [[]]).slice(0, MAX_GRIDS + 1);
}
