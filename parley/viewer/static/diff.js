// The differences between two texts, word by word.
import { h } from "./dom.js";

const MAX_WORDS = 3000; // per text; longer texts are compared by line
const MAX_EDITS = 800; // with more, the texts are shown as entirely different
const MAX_MARKED = 1 / 3; // of the words of both texts; with more, marks hide what they should show

// Myers' shortest edit script. Gives [kind, text] pairs, where kind is "same", "removed" or "added".
let lastDiff = {};
function diffTexts(before, after) {
  // Both sides of a comparison and its legend ask for the same one.
  if (lastDiff.before !== before || lastDiff.after !== after) lastDiff = { before, after, pieces: compareWords(before, after) };
  return lastDiff.pieces;
}

function compareWords(before, after) {
  const words = (text) => text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) || [];
  let [a, b] = [words(before), words(after)];
  if (a.length > MAX_WORDS || b.length > MAX_WORDS) [a, b] = [before, after].map((text) => text.match(/[^\n]*\n|[^\n]+/g) || []);
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const middle = editScript(a.slice(start, a.length - end), b.slice(start, b.length - end));
  return joinPieces([["same", a.slice(0, start).join("")], ...middle, ["same", end ? a.slice(-end).join("") : ""]]);
}

function editScript(a, b) {
  const [n, m] = [a.length, b.length];
  const allDifferent = () => [["removed", a.join("")], ["added", b.join("")]];
  if (!n || !m || n + m > 4 * MAX_WORDS) return allDifferent();
  const trace = [];
  let furthest = new Map([[1, 0]]);
  for (let d = 0; d <= n + m && d <= MAX_EDITS + 1; d++) {
    const next = new Map(furthest);
    trace.push(furthest);
    for (let k = -d; k <= d; k += 2) {
      let x = k === -d || (k !== d && (furthest.get(k - 1) ?? -1) < (furthest.get(k + 1) ?? -1)) ? furthest.get(k + 1) ?? 0 : (furthest.get(k - 1) ?? 0) + 1;
      while (x < n && x - k < m && a[x] === b[x - k]) x++;
      next.set(k, x);
      if (x >= n && x - k >= m) return backtrack(trace, a, b);
    }
    furthest = next;
  }
  return allDifferent();
}

function backtrack(trace, a, b) {
  const pieces = [];
  let [x, y] = [a.length, b.length];
  for (let d = trace.length - 1; d >= 0 && (x > 0 || y > 0); d--) {
    const furthest = trace[d];
    const k = x - y;
    const from = k === -d || (k !== d && (furthest.get(k - 1) ?? -1) < (furthest.get(k + 1) ?? -1)) ? k + 1 : k - 1;
    const px = furthest.get(from) ?? 0;
    const py = px - from;
    while (x > px && y > py) { pieces.push(["same", a[--x]]); y--; }
    if (d > 0) pieces.push(from === k + 1 ? ["added", b[--y]] : ["removed", a[--x]]);
  }
  return pieces.reverse();
}

function joinPieces(pieces) {
  const joined = [];
  for (const [kind, text] of pieces) {
    if (!text) continue;
    if (joined.length && joined.at(-1)[0] === kind) joined.at(-1)[1] += text;
    else joined.push([kind, text]);
  }
  return joined;
}

// One side of a comparison of two texts, A and B, where neither came first, with its own words marked. With `context`, only so
// many characters around each difference.
export function markDifferences(a, b, side, context = Infinity) { return ownWords(a, b, side === "A" ? "before" : "after", "mark", context); }

// Two lists in rows [x, y], where items with the same key stand beside each other; null where one side has none.
export function alignedRows(a, b, key) {
  const keys = [a.map(key), b.map(key)];
  const best = Array.from({ length: a.length + 1 }, () => new Array(b.length + 1).fill(0)); // the longest common subsequence from here on
  for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--) best[i][j] = keys[0][i] === keys[1][j] ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
  const rows = [];
  for (let [i, j] = [0, 0]; i < a.length || j < b.length;) {
    if (i < a.length && j < b.length && keys[0][i] === keys[1][j]) rows.push([a[i++], b[j++]]);
    else if (j === b.length || (i < a.length && best[i + 1][j] >= best[i][j + 1])) rows.push([a[i++], null]);
    else rows.push([null, b[j++]]);
  }
  return rows;
}

// Whether so many words differ that none is marked.
export function mostlyDifferent(before, after) {
  const pieces = diffTexts(before, after);
  const words = (kinds) => pieces.filter(([kind]) => kinds.includes(kind)).reduce((sum, [, text]) => sum + (text.match(/[\p{L}\p{N}_]+/gu) || []).length, 0);
  return ["removed", "added"].every((kind) => words([kind]) > MAX_MARKED * words([kind, "same"]));
}

// Below two texts: what the marks are, or why there are none.
export function markLegend(before, after, where) {
  return h("p", { class: "muted" }, before === after ? "The two texts are identical." : mostlyDifferent(before, after) ? "Most sentences differ, so single words are not marked." : `Marked words are ${where} only.`);
}

function ownWords(before, after, side, tag, context = Infinity) {
  if (mostlyDifferent(before, after)) return [side === "before" ? before : after];
  const ownKind = side === "before" ? "removed" : "added";
  return diffTexts(before, after).filter(([kind]) => kind === "same" || kind === ownKind)
    .map(([kind, text], nth, pieces) => {
      if (kind === "same" && text.length > 2 * context) return `${nth ? text.slice(0, context).replace(/\S*$/, "") : ""}… ${nth < pieces.length - 1 ? text.slice(-context).replace(/^\S*\s+/, "") : ""}`;
      const [, before, words, after] = /^(\s*)([^]*?)(\s*)$/.exec(text);
      return kind === "same" || !words ? text : [before, h(tag, tag === "mark" ? { class: "only" } : {}, words), after];
    });
}

export function sideBySide(before, after, names) {
  return h("div", { class: "sides" },
    ["before", "after"].map((side, index) => h("section", {}, h("h4", {}, names[index]), h("div", { class: "prose", dir: "auto" }, ownWords(before, after, side, index ? "ins" : "del")))),
    markLegend(before, after, "on one side"));
}
