// Numbers and places as text.

function inUnits(value, units) {
  let [name, size] = units[units.length - 1];
  for (const [unit, at] of units) {
    if (Math.abs(value) >= at) {
      [name, size] = [unit, at];
      break;
    }
  }
  return `${Number((value / size).toPrecision(3))} ${name}`.trim();
}

const BYTES = ["PiB", "TiB", "GiB", "MiB", "KiB", "B"].map((unit, at) => [unit, 1024 ** (5 - at)]);
const SECONDS = [["s", 1], ["ms", 1e-3], ["µs", 1e-6], ["ns", 1e-9]];
const COUNTS = [["P", 1e15], ["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3], ["", 1]];

const bytesText = (value) => (value === null ? "" : inUnits(value, BYTES));
const secondsText = (value) => (!value ? "0" : Math.abs(value) < 1e-9 ? "< 1 ns" : inUnits(value, SECONDS));
const percent = (share) => (share && share < 1e-3 ? "< 0.1 %" : `${Number((100 * share).toPrecision(3))} %`);
const countText = (value) => inUnits(value, COUNTS);
const flopsText = (value) => `${countText(value).replace(/\d$/, "$& ")}FLOPs`;
const countOf = (count, one) => `${count.toLocaleString("en")} ${one}${count === 1 ? "" : "s"}`;

// `model.py:42` of the innermost line of a call stack.
function placeText(place) {
  const top = placeOf(place);
  return top ? lineText(top) : "";
}

const baseName = (path) => path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1);

function lineText([file, line]) {
  const name = baseName(file);
  return line ? `${name}:${line}` : name;
}

const shortOp = (op) => op.replace(/^stablehlo\./, "");

// Names of values in a row: the first one, and how many are alike.
function namesText(names) {
  const more = names.length - 1;
  return more ? `${names[0]} ×${names.length}` : names[0];
}

// The text of a sharding without its mesh.
function withoutMesh(sharding) {
  const at = sharding.indexOf(", [");
  return at < 0 ? sharding : sharding.slice(at + 2, -1);
}

const signed = (value, format) => (value ? `${value < 0 ? "−" : "+"}${format(Math.abs(value))}` : "±0");
