"use strict";
/** Sorts the table of games by the column whose heading is clicked; a second click turns the order around. */
(() => {
  const table = document.getElementById("games"), body = table.tBodies[0];
  const headings = Array.from(table.querySelectorAll("thead th"));
  const valueOf = (row, n) => {
    const { dataset, textContent } = row.cells[n];
    return dataset.value === undefined ? textContent.trim().replace(/^–$/, "").toLowerCase() : Number(dataset.value);
  };
  for (const heading of headings) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      // Numbers and dates begin with the largest.
      const column = heading.cellIndex, first = body.rows[0] && valueOf(body.rows[0], column);
      const isText = typeof first === "string" && button.textContent !== "date";
      const before = heading.getAttribute("aria-sort");
      const rises = before ? before === "descending" : isText;
      for (const other of headings) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", rises ? "ascending" : "descending");
      const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0) * (rises ? 1 : -1);
      body.append(...Array.from(body.rows).sort((a, b) => order(valueOf(a, column), valueOf(b, column))));
    });
  }
  const theme = document.getElementById("theme"), root = document.documentElement;
  theme.hidden = false;
  theme.addEventListener("click", () => {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = (root.dataset.theme || (dark ? "dark" : "light")) === "dark" ? "light" : "dark";
  });
})();
