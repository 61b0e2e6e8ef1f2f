"use strict";

/* Formulas between dollars, marked by the build, are set when a page is ready. One that is wider than the page is
   set again: its parts, which \qquad divides, below one another; still wider, it may break at its signs; else it is
   made smaller, to two thirds at the most; beyond that it scrolls. Then cells get their headings: a phone stacks the
   cells of a row, where no heading stands above. */
function setFormula(node, text, displayMode = true) {
  katex.render(text, node, { displayMode, throwOnError: false });
  return node.clientWidth / node.scrollWidth;
}

function fitFormula(node, text) {
  const aligned = text.includes("\\begin{aligned}");
  let share = node.clientWidth / node.scrollWidth;
  if (share < 1 && text.includes("\\qquad")) {
    const stacked = text.replaceAll("\\qquad", aligned ? "\\\\ &" : "\\\\");
    share = setFormula(node, aligned ? stacked : `\\begin{gathered}${stacked}\\end{gathered}`);
  }
  if (share < 0.8 && !aligned && !text.includes("\\qquad")) {
    node.classList.add("broken");
    share = setFormula(node, `\\displaystyle ${text}`, false);
  }
  if (share < 1) node.style.fontSize = `${Math.max(0.67, 0.97 * share)}em`;
}

const keepMarksBeside = (node) => {
  // A line may end inside a formula, but not between it and the bracket, the comma or the "-norm" beside it: both its forms,
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
  const closing = after?.nodeType === Node.TEXT_NODE && after.data.match(/^([)\]".,;:]+|-\w+)/);
  if (closing) {
    after.data = after.data.slice(closing[0].length);
    take(closing[0], parts[parts.length - 1], "append");
  }
};

document.addEventListener("DOMContentLoaded", async () => {
  const displayed = new Map();
  for (const node of document.querySelectorAll(".arithmatex")) {
    const marked = node.textContent.trim();
    const text = marked.slice(2, -2).trim();
    const display = marked.startsWith("\\[");
    setFormula(node, text, display);
    if (display) displayed.set(node, text);
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
  displayed.forEach((text, node) => fitFormula(node, text));
});
