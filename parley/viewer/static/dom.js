// Elements, addresses and formats. All text goes in as text nodes: nothing a model wrote is ever parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";
const ANNOUNCED_MS = 4000;

function flatten(children) { return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false); }

export function h(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "vars") for (const [name, setting] of Object.entries(value)) node.style.setProperty(name, setting);
    else if (key === "value") node.value = value;
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...flatten(children));
  return node;
}

// Replaces all children; lists may be nested.
export function fill(node, ...children) { node.replaceChildren(...flatten(children)); }

export function svg(tag, props = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(props)) if (value !== null && value !== undefined) node.setAttribute(key, value);
  node.append(...flatten(children));
  return node;
}

// The data of an exported file; null when a server answers.
export const embedded = (() => {
  const block = document.getElementById("data");
  return block ? JSON.parse(block.textContent) : null;
})();

// The current page: path, parameters, and the message after the "#". In an exported file, all of it follows the "#".
export function currentPage() {
  if (!embedded) return { path: location.pathname, params: new URLSearchParams(location.search), anchor: location.hash.slice(1) };
  const [path, query = "", anchor = ""] = location.hash.slice(1).split(/[?#]/);
  return { path: path || "/run", params: new URLSearchParams(query), anchor };
}

export function address(path, params, anchor = "") {
  const query = new URLSearchParams(params).toString();
  return (embedded ? "#" : "") + path + (query ? "?" + query : "") + (anchor ? "#" + anchor : "");
}

let navigated = () => {};
export function onNavigate(handler) { navigated = handler; }

export function go(path, params, { anchor = "", replace = false } = {}) {
  const url = address(path, params, anchor);
  if (replace) history.replaceState(null, "", url);
  else history.pushState(null, "", url);
  navigated();
}

export function link(path, params, props, ...children) {
  const { anchor = "", before = () => {}, ...rest } = props || {};
  const follow = (event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
    event.preventDefault();
    before();
    go(path, params, { anchor });
  };
  return h("a", { href: address(path, params, anchor), onclick: follow, ...rest }, ...children);
}

// A missing number is shown as a dash, never as zero.
function missing(value) { return value === null || value === undefined || Number.isNaN(value); }
export function number(value, digits = 2) { return missing(value) ? "–" : rounded(value, digits).replace("-", "−"); }
export function signed(value, digits = 2) { return missing(value) ? "–" : (Number(rounded(value, digits)) > 0 ? "+" : "") + number(value, digits); }
function rounded(value, digits) { return (Number(value.toFixed(digits)) + 0).toFixed(digits); }  // no "-0.00": -0 + 0 is 0
export function pValue(value) { return missing(value) ? "–" : value < 0.0001 ? "< 0.0001" : String(Number(value.toPrecision(2))); }
export function integer(value) { return missing(value) ? "–" : value.toLocaleString("en"); }
export function percent(value) { return missing(value) ? "–" : `${number(100 * value, 0)}%`; }
export function money(value) {
  return missing(value) ? "cost unknown" : value === 0 ? "$0" : value < 0.01 ? "< $0.01" : `$${value.toFixed(2)}`;
}
export function dateTime(seconds) {
  return seconds ? new Date(seconds * 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" }) : "–";
}
export function age(seconds) {
  if (!seconds) return "–";
  const past = Math.max(0, Date.now() / 1000 - seconds);
  const [size, unit] = [[60, "s"], [3600, "min"], [86400, "h"], [86400 * 60, "d"], [86400 * 730, "mo"], [Infinity, "y"]].find(([limit]) => past < limit);
  return `${Math.floor(past / { s: 1, min: 60, h: 3600, d: 86400, mo: 86400 * 30, y: 86400 * 365 }[unit])} ${unit}`;
}
export function bytes(size) {
  return size < 1e6 ? `${Math.max(1, Math.round(size / 1e3))} kB` : size < 1e9 ? `${(size / 1e6).toFixed(1)} MB` : `${(size / 1e9).toFixed(1)} GB`;
}
export function plural(count, word) { return `${integer(count)} ${word}${count === 1 ? "" : "s"}`; }
export function orNone(value) { return value === "" ? "(none)" : value; }
export function mean(values) { return values.reduce((sum, value) => sum + value, 0) / values.length; }
export function unique(values) { return [...new Set(values)]; }

// What the browser keeps for this person: theme, name, keys. A private window keeps nothing.
export function remembered(key) { try { return localStorage.getItem(`parley-${key}`) || ""; } catch { return ""; } }
export function remember(key, value) { try { localStorage.setItem(`parley-${key}`, value); } catch { /* as above */ } }

// Shown for a moment at the bottom of the page, and read out by screen readers.
let announced;
export function announce(text) {
  const status = document.getElementById("status");
  status.textContent = text;
  clearTimeout(announced);
  announced = setTimeout(() => { status.textContent = ""; }, ANNOUNCED_MS);
}
