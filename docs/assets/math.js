"use strict";

/* Formulas between dollars, marked by the build, are set when a page is ready. */
document.addEventListener("DOMContentLoaded", () => {
  for (const node of document.querySelectorAll(".arithmatex")) {
    const text = node.textContent.trim();
    const display = text.startsWith("\\[");
    katex.render(text.slice(2, -2), node, { displayMode: display, throwOnError: false });
  }
});
