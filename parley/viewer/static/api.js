// Requests to the server; in an exported file, the same answers from the data inside it.
import { embedded } from "./dom.js";

export async function get(path, params = {}) {
  if (embedded) return getEmbedded(path, new URLSearchParams(params));
  return readAnswer(await fetch("/api/" + path + "?" + new URLSearchParams(params)));
}

export async function post(path, params, body, read = readAnswer) {
  const options = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  return read(await fetch("/api/" + path + "?" + new URLSearchParams(params), options));
}

async function readAnswer(response) {
  const text = await response.text();
  const fallback = `the server answered with status ${response.status}`;
  let answer;
  try { answer = JSON.parse(text); } catch { throw new Error(text.slice(0, 200) || fallback); }
  if (!response.ok) throw new Error(answer.error || fallback);
  return answer;
}

export async function readText(response) { return response.ok ? response.text() : readAnswer(response); }

function getEmbedded(path, params) {
  const answers = { run: embedded.summary, headline: embedded.headline, config: embedded.config, texts: embedded.texts, unit: embedded.units.find(({ id }) => id === params.get("unit")), ballots: {} };
  if (answers[path]) return answers[path];
  throw new Error(path === "unit" ? `the unit '${params.get("unit")}' is not in this file` : "an exported file does not contain this page");
}
