// Light or dark as the reader chose; without a choice, as the system is.
const stored = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
const apply = (theme) => { if (theme) document.documentElement.dataset.theme = theme; };
apply(stored());
document.getElementById("theme").addEventListener("click", () => {
  const dark = getComputedStyle(document.documentElement).colorScheme === "dark";
  const theme = dark ? "light" : "dark";
  apply(theme);
  try { localStorage.setItem("theme", theme); } catch { /* a browser that stores nothing for files forgets the choice */ }
});
