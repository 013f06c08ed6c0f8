// Requests to the server; in an exported file, the same answers from the data inside it.
import { embedded, unique } from "./dom.js";
import { saidTexts } from "./echo.js";

export async function get(path, params = {}) {
  if (embedded) return getEmbedded(path, new URLSearchParams(params));
  return readAnswer(await fetch("/api/" + path + "?" + new URLSearchParams(params)));
}

export async function post(path, params, body) {
  const options = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  return readAnswer(await fetch("/api/" + path + "?" + new URLSearchParams(params), options));
}

async function readAnswer(response) {
  const text = await response.text();
  const fallback = `the server answered with status ${response.status}`;
  let answer;
  try { answer = JSON.parse(text); } catch { throw new Error(text.slice(0, 200) || fallback); }
  if (!response.ok) throw new Error(answer.error || fallback);
  return answer;
}

function getEmbedded(path, params) {
  if (path === "run") return embedded.summary;
  if (path === "headline") return embedded.headline;
  if (path === "units") return embeddedUnits(params);
  if (path === "unit") return embeddedUnit(params);
  if (path === "config") return embedded.config;
  if (path === "texts") return embedded.texts;
  throw new Error("an exported file does not contain this page");
}

const FIGURE_FILTERS = { "d.status": "status", "d.answer": "answers", "d.choice": "choice", "d.flip": "flip", "d.changed": "changed", "d.parse": "parse", "d.tag": "tags" };

const IDENTITIES = ["identity", "other", "identity_a", "identity_b"]; // f.identity finds a pair by either candidate

function filterValues(row, key) {
  if (key === "f.identity") return unique(IDENTITIES.filter((name) => name in row.facets).map((name) => row.facets[name]));
  if (key.startsWith("f.")) return key.slice(2) in row.facets ? [row.facets[key.slice(2)]] : [];
  const value = row[FIGURE_FILTERS[key]];
  if (key === "d.changed") return value === null ? [] : [value ? "changed" : "unchanged"];
  return Array.isArray(value) ? value : value === null || value === undefined ? [] : [value];
}

function sortValue(row, key) { return key.startsWith("f.") ? row.facets[key.slice(2)] : row[key]; }

function matchingRows(params) {
  const rows = embedded.rows[params.get("judge") || ""] || embedded.rows[""];
  const [low, high] = ["low", "high"].map((key) => (params.get(key) ? Number(params.get(key)) : null));
  const words = (params.get("q") || "").toLowerCase().match(/"[^"]+"|\S+/g) || [];
  const texts = new Map(words.length ? embedded.units.map((unit) => [unit.id, unit.messages
    .filter((message) => params.get("prompts") || message.role !== "narrator").flatMap(saidTexts).join("\n").toLowerCase()]) : []);
  const base = rows.filter((row) =>
    (low === null || (row.score !== null && row.score >= low)) && (high === null || (row.score !== null && row.score <= high))
    && words.every((word) => texts.get(row.id).includes(word.replaceAll('"', "").replace(/\*$/, ""))));
  const keys = unique([...params.keys()].filter((key) => /^[fd]\./.test(key)));
  const passes = (row, key) => params.getAll(key).some((value) => filterValues(row, key).includes(value));
  const matches = base.filter((row) => keys.every((key) => passes(row, key)));
  const sort = params.get("sort") || "position";
  const direction = params.get("desc") ? -1 : 1;
  matches.sort((x, y) => {
    const [a, b] = [sortValue(x, sort), sortValue(y, sort)];
    const missingLast = (a === null || a === undefined) - (b === null || b === undefined);
    return missingLast || (a < b ? -direction : a > b ? direction : x.position - y.position);
  });
  return { rows, base, keys, passes, matches };
}

function embeddedUnits(params) {
  const { rows, base, keys, passes, matches } = matchingRows(params);
  const facets = unique(rows.flatMap((row) => Object.keys(row.facets).map((name) => "f." + name)));
  const filters = [...facets, ...Object.keys(FIGURE_FILTERS)].map((key) => {
    const counts = new Map(rows.flatMap((row) => filterValues(row, key)).map((value) => [value, 0]));
    for (const row of base.filter((candidate) => keys.every((other) => other === key || passes(candidate, other))))
      for (const value of filterValues(row, key)) counts.set(value, counts.get(value) + 1);
    return { key, values: [...counts] };
  });
  const [page, size] = [Number(params.get("page") || 0), Number(params.get("size") || 50)];
  return {
    total: rows.length, matching: matches.length, rows: matches.slice(page * size, (page + 1) * size), judges: embedded.judges,
    filters: filters.filter(({ key, values }) => values.length > 1 || keys.includes(key)), indexed: rows.length, done: rows.length, loading: false,
  };
}

function embeddedUnit(params) {
  const unit = embedded.units.find(({ id }) => id === params.get("unit"));
  if (!unit) throw new Error(`the unit '${params.get("unit")}' is not in this file`);
  const { matches } = matchingRows(params);
  const index = matches.findIndex((row) => row.id === unit.id);
  const neighbours = index < 0 ? {} : { index, total: matches.length, previous: matches[index - 1]?.id, next: matches[index + 1]?.id };
  const figures = embedded.rows[""].find((row) => row.id === unit.id);
  return { ...unit, facets: figures.facets, figures, neighbours };
}
