// Where answers come from: the server, or in an exported file the data inside it.
import { embedded } from "./dom.js";

export async function get(path, params = {}) {
  if (embedded) return fromFile(path, new URLSearchParams(params));
  return answer(await fetch("/api/" + path + "?" + new URLSearchParams(params)));
}

export async function post(path, params, body) {
  const sent = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  return answer(await fetch("/api/" + path + "?" + new URLSearchParams(params), sent));
}

async function answer(response) {
  const text = await response.text();
  let found;
  try { found = JSON.parse(text); } catch { throw new Error(text.slice(0, 200) || `the server said ${response.status}`); }
  if (!response.ok) throw new Error(found.error || `the server said ${response.status}`);
  return found;
}

function fromFile(path, params) {
  if (path === "run") return embedded.summary;
  if (path === "headline") return embedded.headline;
  if (path === "units") return unitsInFile(params);
  if (path === "unit") return unitInFile(params);
  if (path === "texts") return embedded.texts;
  throw new Error("this is not part of an exported file");
}

const DERIVED = { "d.status": "status", "d.choice": "choice", "d.flip": "flip", "d.changed": "changed", "d.parse": "parse", "d.tag": "tags" };

function valuesOf(row, key) {
  if (key.startsWith("f.")) return key.slice(2) in row.facets ? [row.facets[key.slice(2)]] : [];
  const value = row[DERIVED[key]];
  if (key === "d.changed") return value === null ? [] : [value ? "changed" : "kept"];
  return Array.isArray(value) ? value : value === null || value === undefined ? [] : [value];
}

function sortValue(row, key) { return key.startsWith("f.") ? row.facets[key.slice(2)] : row[key]; }

function matchingRows(params) {
  const rows = embedded.rows[params.get("judge") || ""] || embedded.rows[""];
  const [low, high] = ["low", "high"].map((key) => (params.get(key) ? Number(params.get(key)) : null));
  const words = (params.get("q") || "").toLowerCase().match(/"[^"]+"|\S+/g) || [];
  const texts = new Map(words.length ? embedded.units.map((unit) => [unit.id, unit.messages
    .filter((one) => params.get("asked") || one.role !== "narrator").map((one) => one.text).join("\n").toLowerCase()]) : []);
  const base = rows.filter((row) =>
    (low === null || (row.score !== null && row.score >= low)) && (high === null || (row.score !== null && row.score <= high))
    && words.every((word) => texts.get(row.id).includes(word.replaceAll('"', "").replace(/\*$/, ""))));
  const keys = [...new Set([...params.keys()].filter((key) => /^[fd]\./.test(key)))];
  const passes = (row, key) => params.getAll(key).some((wanted) => valuesOf(row, key).includes(wanted));
  const found = base.filter((row) => keys.every((key) => passes(row, key)));
  const sort = params.get("sort") || "position";
  const direction = params.get("desc") ? -1 : 1;
  found.sort((x, y) => {
    const [a, b] = [sortValue(x, sort), sortValue(y, sort)];
    const missing = (a === null || a === undefined) - (b === null || b === undefined);
    return missing || (a < b ? -direction : a > b ? direction : x.position - y.position);
  });
  return { rows, base, keys, passes, found };
}

function unitsInFile(params) {
  const { rows, base, keys, passes, found } = matchingRows(params);
  const names = [...new Set(rows.flatMap((row) => Object.keys(row.facets).map((name) => "f." + name)))];
  const filters = [...names, ...Object.keys(DERIVED)].map((key) => {
    const counts = new Map(rows.flatMap((row) => valuesOf(row, key)).map((value) => [value, 0]));
    for (const row of base.filter((one) => keys.every((other) => other === key || passes(one, other))))
      for (const value of valuesOf(row, key)) counts.set(value, counts.get(value) + 1);
    return { key, values: [...counts] };
  });
  const [page, size] = [Number(params.get("page") || 0), Number(params.get("size") || 50)];
  return {
    total: rows.length, matching: found.length, rows: found.slice(page * size, (page + 1) * size), judges: embedded.judges,
    filters: filters.filter((one) => one.values.length > 1 || keys.includes(one.key)), looked: rows.length, done: rows.length, loading: false,
  };
}

function unitInFile(params) {
  const unit = embedded.units.find((one) => one.id === params.get("unit"));
  if (!unit) throw new Error(`the unit '${params.get("unit")}' is not in this file`);
  const { found } = matchingRows(params);
  const at = found.findIndex((row) => row.id === unit.id);
  const neighbours = at < 0 ? {} : { at, of: found.length, previous: found[at - 1]?.id, next: found[at + 1]?.id };
  return { ...unit, facets: embedded.rows[""].find((row) => row.id === unit.id).facets, neighbours };
}
