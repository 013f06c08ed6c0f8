// What differs between two texts, word by word.
import { h } from "./dom.js";

const MOST = 3000; // words a side; beyond, lines are compared instead

// Myers' shortest edit script, on words. Gives [kind, text] pairs: "same", "gone", "new".
export function differences(before, after) {
  const cut = (text) => text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) || [];
  let [a, b] = [cut(before), cut(after)];
  if (a.length > MOST || b.length > MOST) [a, b] = [before, after].map((text) => text.match(/[^\n]*\n|[^\n]+/g) || []);
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const middle = script(a.slice(start, a.length - end), b.slice(start, b.length - end));
  return joined([["same", a.slice(0, start).join("")], ...middle, ["same", end ? a.slice(-end).join("") : ""]]);
}

function script(a, b) {
  const [n, m] = [a.length, b.length];
  if (!n || !m || n + m > 4 * MOST) return [["gone", a.join("")], ["new", b.join("")]];
  const trace = [];
  let best = new Map([[1, 0]]);
  for (let d = 0; d <= n + m; d++) {
    const next = new Map(best);
    trace.push(best);
    for (let k = -d; k <= d; k += 2) {
      let x = k === -d || (k !== d && (best.get(k - 1) ?? -1) < (best.get(k + 1) ?? -1)) ? best.get(k + 1) ?? 0 : (best.get(k - 1) ?? 0) + 1;
      while (x < n && x - k < m && a[x] === b[x - k]) x++;
      next.set(k, x);
      if (x >= n && x - k >= m) return back(trace, a, b);
    }
    best = next;
    if (d > 800) break;
  }
  return [["gone", a.join("")], ["new", b.join("")]];
}

function back(trace, a, b) {
  const found = [];
  let [x, y] = [a.length, b.length];
  for (let d = trace.length - 1; d >= 0 && (x > 0 || y > 0); d--) {
    const best = trace[d];
    const k = x - y;
    const from = k === -d || (k !== d && (best.get(k - 1) ?? -1) < (best.get(k + 1) ?? -1)) ? k + 1 : k - 1;
    const px = best.get(from) ?? 0;
    const py = px - from;
    while (x > px && y > py) { found.push(["same", a[--x]]); y--; }
    if (d > 0) found.push(from === k + 1 ? ["new", b[--y]] : ["gone", a[--x]]);
  }
  return found.reverse();
}

function joined(pieces) {
  const found = [];
  for (const [kind, text] of pieces) {
    if (!text) continue;
    if (found.length && found.at(-1)[0] === kind) found.at(-1)[1] += text;
    else found.push([kind, text]);
  }
  return found;
}

export function marked(before, after, side) {
  const kind = side === "before" ? "gone" : "new";
  const tag = side === "before" ? "del" : "ins";
  return differences(before, after).filter(([one]) => one === "same" || one === kind)
    .map(([one, text]) => (one === "same" ? text : h(tag, {}, text)));
}

export function sideBySide(before, after, names) {
  const changed = differences(before, after).filter(([kind]) => kind !== "same").length;
  return h("div", { class: "sides" },
    h("section", {}, h("h4", {}, names[0]), h("div", { class: "prose", dir: "auto" }, marked(before, after, "before"))),
    h("section", {}, h("h4", {}, names[1]), h("div", { class: "prose", dir: "auto" }, marked(before, after, "after"))),
    h("p", { class: "muted" }, changed ? "Removed on the left, added on the right." : "Both are the same, word for word."));
}
