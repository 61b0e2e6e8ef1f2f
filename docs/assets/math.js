"use strict";

/* Formulas between dollars, marked by the build, are set when a page is ready. One that is wider than a narrow
   page is made smaller, to two thirds at the most; beyond that it scrolls. */
document.addEventListener("DOMContentLoaded", async () => {
  const displayed = [];
  for (const node of document.querySelectorAll(".arithmatex")) {
    const text = node.textContent.trim();
    const display = text.startsWith("\\[");
    katex.render(text.slice(2, -2), node, { displayMode: display, throwOnError: false });
    if (display) displayed.push(node);
  }
  await document.fonts.ready; // a formula's width is known when its letters are there
  for (const node of displayed) {
    const share = node.clientWidth / node.scrollWidth;
    if (share < 1) node.style.fontSize = `${Math.max(0.67, 0.97 * share)}em`;
  }
});
