"use strict";

/* Formulas between dollars, marked by the build, are set when a page is ready. One that is wider than a narrow
   page is made smaller, to two thirds at the most; beyond that it scrolls. Then cells get their headings: a phone
   stacks the cells of a row, where no heading stands above. */
document.addEventListener("DOMContentLoaded", async () => {
  const displayed = [];
  for (const node of document.querySelectorAll(".arithmatex")) {
    const text = node.textContent.trim();
    const display = text.startsWith("\\[");
    katex.render(text.slice(2, -2), node, { displayMode: display, throwOnError: false });
    if (display) displayed.push(node);
  }
  for (const cell of document.querySelectorAll(".md-content table:not([class]) td:not(:first-child, :empty)")) {
    const heading = cell.closest("table").querySelectorAll("th")[cell.cellIndex];
    if (!heading?.hasChildNodes()) continue;
    const label = document.createElement("span");
    label.className = "heading";
    label.append(...heading.cloneNode(true).childNodes, ": ");
    label.querySelector("sup[id]")?.remove(); // a footnote's mark is there once
    cell.prepend(label);
  }
  await document.fonts.ready; // a formula's width is known when its letters are there
  for (const node of displayed) {
    const share = node.clientWidth / node.scrollWidth;
    if (share < 1) node.style.fontSize = `${Math.max(0.67, 0.97 * share)}em`;
  }
});
