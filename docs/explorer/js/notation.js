"use strict";

/* Shows plain mathematical text, "χ_t falls like t^(-1/2)", with real subscripts and superscripts. */
var Notation = (() => {
  const PARTS = /_([A-Za-z0-9]+)|\^\(([^)]*)\)/g;

  function write(node, text) {
    node.replaceChildren();
    let done = 0;
    for (const match of text.matchAll(PARTS)) {
      node.append(text.slice(done, match.index));
      const part = document.createElement(match[1] === undefined ? "sup" : "sub");
      part.textContent = (match[1] ?? match[2]).replace("-", "−");
      node.append(part);
      done = match.index + match[0].length;
    }
    node.append(text.slice(done));
  }

  return { write };
})();
