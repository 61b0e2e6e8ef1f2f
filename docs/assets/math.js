"use strict";

/* Formulas between dollars, marked by the build, are set when a page is ready. One that is wider than a narrow
   page is made smaller, to two thirds at the most; beyond that it scrolls. */
document.addEventListener("DOMContentLoaded", () => {
  for (const node of document.querySelectorAll(".arithmatex")) {
    const text = node.textContent.trim();
    const display = text.startsWith("\\[");
    katex.render(text.slice(2, -2), node, { displayMode: display, throwOnError: false });
    if (display && node.scrollWidth > node.clientWidth) {
      node.style.fontSize = `${Math.max(0.67, (0.97 * node.clientWidth) / node.scrollWidth)}em`;
    }
  }
});
