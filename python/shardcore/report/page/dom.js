"use strict";
// The data, and elements. Text goes into the page as text nodes only.

const data = JSON.parse(document.getElementById("data").textContent);
const SAME = -2;

const textOf = (number) => (number < 0 ? "" : data.texts[number]);
// Frames of call stacks, [file, line, column], innermost first; the user's innermost one is the place.
const stackOf = (number) => (number < 0 ? [] : data.stacks[number]);
const placeOf = (number) => stackOf(number)[data.tops[number]];
const shardingOf = (number) => (number < 0 ? null : data.shardings[number]);
const shortSharding = (number) => (number < 0 ? "replicated" : data.shardings[number].short);

// An element with attributes; functions are listeners. Children are elements or text.
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  fill(made, attributes, children);
  return made;
}

function drawn(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  fill(made, attributes, children);
  return made;
}

function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
}

// A chart of the width of its place: drawn anew when that changes, and at the width of paper before it is printed.
const PAPER = 700;
function fitted(chart, draw) {
  let width = 0;
  const fit = (wide) => {
    if (!wide || wide === width) return;
    width = wide;
    draw(width);
  };
  const seen = () => fit(Math.round(chart.getBoundingClientRect().width));
  new ResizeObserver(seen).observe(chart);
  window.addEventListener("beforeprint", () => fit(PAPER));
  window.addEventListener("afterprint", seen);
}

// What only helps on a screen.
const hint = (text) => element("span", { class: "hint" }, ` ${text}`);

function section(id, title, ...children) {
  return element("section", { id, "aria-labelledby": `${id}-title` },
    element("h2", { id: `${id}-title` }, title), ...children.filter((child) => child !== null));
}

// What the reader looks for, and who wants to know when that changes.
const sought = { query: "", axis: "", changed: false };
const watchers = [];

function soughtChanged() {
  for (const watch of watchers) watch();
}

function isSought(text, axes, was = SAME) {
  if (sought.axis && !axes.includes(sought.axis)) return false;
  if (sought.changed && was === SAME) return false;
  return sought.query.split(/\s+/).every((word) => text.includes(word));
}
