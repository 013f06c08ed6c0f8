// Elements and addresses. All text goes in as text nodes: nothing a model wrote is ever read as HTML.

const SVG = "http://www.w3.org/2000/svg";

export function h(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "vars") for (const [name, to] of Object.entries(value)) node.style.setProperty(name, to);
    else if (key === "value") node.value = value;
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== false));
  return node;
}

// What a node holds, anew; lists in lists are welcome.
export function fill(node, ...children) {
  node.replaceChildren(...children.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== false));
}

export function svg(tag, props = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(props)) if (value !== null && value !== undefined) node.setAttribute(key, value);
  node.append(...children.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== false));
  return node;
}

// In an exported file there is no server: addresses live behind the "#".
export const embedded = (() => {
  const block = document.getElementById("data");
  return block ? JSON.parse(block.textContent) : null;
})();

export function here() {
  if (!embedded) return { path: location.pathname, params: new URLSearchParams(location.search), mark: location.hash.slice(1) };
  const [path, query = "", mark = ""] = location.hash.slice(1).split(/[?#]/);
  return { path: path || "/run", params: new URLSearchParams(query), mark };
}

export function address(path, params, mark = "") {
  const query = new URLSearchParams(params).toString();
  return (embedded ? "#" : "") + path + (query ? "?" + query : "") + (mark ? "#" + mark : "");
}

let turn = () => {};
export function whenTurned(handler) { turn = handler; }

export function go(path, params, { mark = "", replace = false } = {}) {
  const to = address(path, params, mark);
  if (replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  turn();
}

export function link(path, params, props, ...children) {
  const { mark, ...rest } = props || {};
  const follow = (event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
    event.preventDefault();
    go(path, params, { mark: mark || "" });
  };
  return h("a", { href: address(path, params, mark || ""), onclick: follow, ...rest }, ...children);
}

// Numbers as people read them; what is not known is a dash, never a zero.
export function number(value, digits = 2) {
  return value === null || value === undefined || Number.isNaN(value) ? "–" : value.toFixed(digits).replace("-", "−");
}
export function signed(value, digits = 2) {
  return value === null || value === undefined ? "–" : (value > 0 ? "+" : "") + number(value, digits);
}
export function whole(value) { return value === null || value === undefined ? "–" : value.toLocaleString("en"); }
export function share(value) { return value === null || value === undefined ? "–" : `${(100 * value).toFixed(0)}%`; }
export function money(value) {
  return value === null || value === undefined ? "cost unknown" : value === 0 ? "$0" : value < 0.01 ? "< $0.01" : `$${value.toFixed(2)}`;
}
export function day(seconds) {
  return seconds ? new Date(seconds * 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" }) : "–";
}
export function bytes(size) {
  return size < 1e6 ? `${Math.max(1, Math.round(size / 1e3))} kB` : size < 1e9 ? `${(size / 1e6).toFixed(1)} MB` : `${(size / 1e9).toFixed(1)} GB`;
}
export function plural(count, word) { return `${whole(count)} ${word}${count === 1 ? "" : "s"}`; }
export function named(value) { return value === "" ? "(none)" : value; }

export function say(text) { document.getElementById("said").textContent = text; }
