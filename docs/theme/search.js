// Search over the whole site, in the reader's browser: all words must be in a section; headings count more, the Python
// reference less, and a section that uses a word often comes before one that mentions it.
const field = document.getElementById("search");
const list = document.getElementById("found");

function rank(section, words) {
  const heading = `${section.page} ${section.heading}`.toLowerCase();
  const text = section.text.toLowerCase();
  let points = 0;
  for (const word of words) {
    const times = Math.min(9, text.split(word).length - 1);
    if (heading.includes(word)) points += 10 + times;
    else if (times) points += times;
    else return 0;
  }
  return section.to.startsWith("reference-") ? points / 2 : points; // a page that explains comes before a signature
}

function excerpt(text, word) {
  const at = Math.max(0, text.toLowerCase().indexOf(word) - 40);
  return (at ? "…" : "") + text.slice(at, at + 130);
}

function show() {
  const words = field.value.toLowerCase().split(/\s+/).filter((word) => word.length > 1);
  const found = words.length
    ? SECTIONS.map((section) => [rank(section, words), section]).filter(([points]) => points).sort((a, b) => b[0] - a[0])
    : [];
  list.replaceChildren(...found.slice(0, 12).map(([, section]) => {
    const link = document.createElement("a");
    link.href = section.to;
    const title = document.createElement("b");
    title.textContent = section.page === section.heading ? section.page : `${section.page}: ${section.heading}`;
    const excerpted = document.createElement("span");
    excerpted.textContent = excerpt(section.text, words[0]);
    link.append(title, excerpted);
    const item = document.createElement("li");
    item.append(link);
    return item;
  }));
  list.hidden = !words.length;
  if (words.length && !found.length) list.textContent = "nothing was found";
}

field.addEventListener("input", show);
field.addEventListener("keydown", (event) => {
  if (event.key === "Escape") { field.value = ""; show(); }
  if (event.key === "Enter") list.querySelector("a")?.click();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== field) { event.preventDefault(); field.focus(); }
});
