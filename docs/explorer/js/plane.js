"use strict";

/*
 * The (r, s) plane: the certified region 0 < r <= 2s < 2 in bands of the rate's exponent min(r/2, 1 - s), and a dot
 * for the current choice that a pointer can drag. The sliders do the same for a keyboard.
 */
var Plane = (() => {
  const SIZE = { width: 440, height: 320, left: 58, right: 14, top: 14, bottom: 42 };
  const MAX_R = 2.2;
  const MAX_S = 1.2;
  const LEVELS = [0, 0.1, 0.2, 0.3, 0.4];
  const across = (r) => SIZE.left + (r / MAX_R) * (SIZE.width - SIZE.left - SIZE.right);
  const down = (s) => SIZE.height - SIZE.bottom - (s / MAX_S) * (SIZE.height - SIZE.top - SIZE.bottom);
  const points = (corners) => corners.map(([r, s]) => `${across(r).toFixed(2)},${down(s).toFixed(2)}`).join(" ");

  /** Where min(r/2, 1 - s) >= level inside the region: a triangle with corners on r = 2 level, s = 1 - level, r = 2s. */
  const band = (level) => [[2 * level, level], [2 * level, 1 - level], [2 - 2 * level, 1 - level]];

  function element(name, attributes, text) {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    return node;
  }

  function drawAxes(svg) {
    const label = (r, s, text, attributes) =>
      svg.append(element("text", { x: across(r), y: down(s), ...attributes }, text));
    for (const r of [0, 0.5, 1, 1.5, 2]) {
      svg.append(element("line", { class: "grid", x1: across(r), x2: across(r), y1: down(0), y2: down(MAX_S) }));
      label(r, 0, String(r), { dy: 16, "text-anchor": "middle" });
    }
    for (const s of [0, 0.25, 0.5, 0.75, 1]) {
      svg.append(element("line", { class: "grid", x1: across(0), x2: across(MAX_R), y1: down(s), y2: down(s) }));
      label(0, s, String(s), { dx: -7, dy: 4, "text-anchor": "end" });
    }
    label(MAX_R / 2, 0, "r:  1 − θ falls like t⁻ʳ", { dy: 34, "text-anchor": "middle", class: "axis" });
    const middle = { x: 12, y: down(MAX_S / 2) };
    svg.append(
      element(
        "text",
        { ...middle, transform: `rotate(-90 ${middle.x} ${middle.y})`, "text-anchor": "middle", class: "axis" },
        "s:  α falls like t⁻ˢ",
      ),
    );
  }

  function drawRegion(svg) {
    for (const level of LEVELS) svg.append(element("polygon", { class: "band", points: points(band(level)) }));
    svg.append(element("polyline", { class: "border", points: points([[0, 0], [2, 1]]) }));
    svg.append(element("polyline", { class: "border open", points: points([[0, 0], [0, 1], [2, 1]]) }));
    const note = (r, s, text, rotation = 0) => {
      const place = { x: across(r), y: down(s), "text-anchor": "middle", class: "note" };
      const turn = rotation ? { transform: `rotate(${rotation} ${place.x} ${place.y})` } : {};
      svg.append(element("text", { ...place, ...turn }, text));
    };
    const slope = (-Math.atan2(down(0) - down(1), across(2) - across(0)) * 180) / Math.PI;
    note(1.32, 0.6, "r = 2s", slope);
    note(1.0, 1.04, "s = 1: condition 4 fails");
    note(1.55, 0.35, "r > 2s: condition 3 fails");
    note(0.55, 0.8, "certified");
  }

  /** Draw the plane once; the answer moves the dot. `choose(r, s)` hears of drags, in whole hundredths. */
  function create(svg, choose) {
    svg.setAttribute("viewBox", `0 0 ${SIZE.width} ${SIZE.height}`);
    drawAxes(svg);
    drawRegion(svg);
    const dot = element("circle", { class: "dot", r: 8 });
    svg.append(dot);

    const pick = (event) => {
      const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      const clamp = (value, top) => Math.round(Math.min(top, Math.max(0, value)) * 100) / 100;
      choose(
        clamp(((place.x - across(0)) / (across(MAX_R) - across(0))) * MAX_R, MAX_R),
        clamp(((down(0) - place.y) / (down(0) - down(MAX_S))) * MAX_S, MAX_S),
      );
    };
    svg.addEventListener("pointerdown", (event) => {
      svg.setPointerCapture(event.pointerId);
      pick(event);
    });
    svg.addEventListener("pointermove", (event) => {
      if (svg.hasPointerCapture(event.pointerId)) pick(event);
    });

    return {
      show(r, s, certified) {
        dot.setAttribute("cx", across(r));
        dot.setAttribute("cy", down(s));
        dot.setAttribute("data-verdict", certified ? "certified" : "not certified");
        const where = r > 0 && r <= 2 * s && s < 1 ? "inside" : "outside";
        svg.setAttribute("aria-label", `Plane of r and s. Your choice r = ${r}, s = ${s} lies ${where} the region 0 < r ≤ 2s < 2.`);
      },
    };
  }

  return { create, element };
})();
