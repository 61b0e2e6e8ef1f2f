"use strict";

/* Formulas between dollars, marked by the build, are set when a page is ready. One that is wider than a narrow
   page is made smaller, to two thirds at the most; beyond that it scrolls. Then cells get their headings: a phone
   stacks the cells of a row, where no heading stands above. */
const keepMarksBeside = (node) => {
  // A line may end inside a formula, but not between it and the bracket or the comma beside it: both its forms,
  // the one that is seen and the one that is read aloud, take that in.
  const parts = node.querySelectorAll(".katex-base");
  const row = node.querySelector("math mrow");
  const take = (mark, part, place) => {
    const seen = document.createElement("span");
    seen.className = "beside";
    const read = document.createElementNS(row.namespaceURI, "mtext");
    seen.textContent = read.textContent = mark;
    part[place](seen);
    row[place](read);
  };
  const { previousSibling: before, nextSibling: after } = node;
  const opening = before?.nodeType === Node.TEXT_NODE && before.data.match(/[(["]+$/);
  if (opening) {
    before.data = before.data.slice(0, opening.index);
    take(opening[0], parts[0], "prepend");
  }
  const closing = after?.nodeType === Node.TEXT_NODE && after.data.match(/^[)\]".,;:]+/);
  if (closing) {
    after.data = after.data.slice(closing[0].length);
    take(closing[0], parts[parts.length - 1], "append");
  }
};

document.addEventListener("DOMContentLoaded", async () => {
  const displayed = [];
  for (const node of document.querySelectorAll(".arithmatex")) {
    const text = node.textContent.trim();
    const display = text.startsWith("\\[");
    katex.render(text.slice(2, -2), node, { displayMode: display, throwOnError: false });
    if (display) displayed.push(node);
    else keepMarksBeside(node);
  }
  for (const cell of document.querySelectorAll(".md-content table:not([class]) td:not(:empty)")) {
    const heading = cell.closest("table").querySelectorAll("th")[cell.cellIndex];
    if (!heading?.hasChildNodes()) continue;
    if (cell.cellIndex === 0 && !heading.querySelector(".katex")) continue; // a row's name needs no heading
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
