"use strict";

/* Line charts against a logarithmic or plain t, as SVG so that the page's colours, light or dark, apply to them. */
var Chart = (() => {
  const SIZE = { width: 360, height: 220, left: 44, right: 20, top: 10, bottom: 36 };
  const element = (...parts) => Plane.element(...parts);
  const superscript = (n) => `10${String(n).replace(/-/g, "⁻").replace(/\d/g, (digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit])}`;

  /** Ticks of a plain axis: about five round numbers. */
  function roundTicks(low, high) {
    const rough = (high - low) / 5;
    const power = Math.pow(10, Math.floor(Math.log10(rough)));
    const step = [1, 2, 5, 10].find((factor) => factor * power >= rough) * power;
    const ticks = [];
    for (let value = Math.ceil(low / step) * step; value <= high + step * 1e-9; value += step) ticks.push(value);
    return ticks.map((value) => ({ value, text: String(Number(value.toPrecision(3))) }));
  }

  function powerTicks(low, high) {
    const first = Math.ceil(Math.log10(low) - 1e-9);
    const last = Math.floor(Math.log10(high) + 1e-9);
    const every = Math.max(1, Math.ceil((last - first + 1) / 7));
    const ticks = [];
    for (let n = first; n <= last; n += every) ticks.push({ value: Math.pow(10, n), text: superscript(n) });
    return ticks;
  }

  /**
   * lines: [{ name, times, values, class }]; options: { low, high } fix the vertical range, logarithmic makes the
   * vertical axis logarithmic, plain the horizontal one not.
   */
  function draw(svg, lines, { low, high, logarithmic = false, plain = false } = {}) {
    const drawable = (value) => Number.isFinite(value) && (!logarithmic || value > 0);
    const all = lines.flatMap((line) => Array.from(line.values)).filter(drawable);
    let bottom = low ?? Math.min(...all);
    let top = high ?? Math.max(...all);
    if (logarithmic) [bottom, top] = [bottom / 1.25, top * 1.25];
    else if (low === undefined) [bottom, top] = [bottom - 0.06 * (top - bottom || 1), top + 0.06 * (top - bottom || 1)];
    const last = lines[0].times[lines[0].times.length - 1];
    const along = (t) => (last === 1 ? 0 : plain ? (t - 1) / (last - 1) : Math.log(t) / Math.log(last));
    const across = (t) => SIZE.left + along(t) * (SIZE.width - SIZE.left - SIZE.right);
    const level = logarithmic ? Math.log : (value) => value;
    const span = level(top) - level(bottom);
    const down = (value) =>
      SIZE.height - SIZE.bottom - ((level(value) - level(bottom)) / span) * (SIZE.height - SIZE.top - SIZE.bottom);

    svg.setAttribute("viewBox", `0 0 ${SIZE.width} ${SIZE.height}`);
    svg.replaceChildren();
    const [left, right, floor] = [SIZE.left, SIZE.width - SIZE.right, SIZE.height - SIZE.bottom];
    for (const { value, text } of logarithmic ? powerTicks(bottom, top) : roundTicks(bottom, top)) {
      svg.append(element("line", { class: "grid", x1: left, x2: right, y1: down(value), y2: down(value) }));
      svg.append(element("text", { x: left - 7, y: down(value) + 4, "text-anchor": "end" }, text));
    }
    const short = ({ value }) => ({ value: Math.max(value, 1), text: value >= 1000 ? `${value / 1000}k` : String(value) });
    for (const { value, text } of plain ? roundTicks(1, last).map(short) : powerTicks(1, last)) {
      svg.append(element("line", { class: "grid", x1: across(value), x2: across(value), y1: SIZE.top, y2: floor }));
      svg.append(element("text", { x: across(value), y: floor + 17, "text-anchor": "middle" }, text));
    }
    svg.append(element("text", { x: (left + right) / 2, y: floor + 32, "text-anchor": "middle", class: "axis" }, "t"));
    for (const line of lines) {
      const path = [];
      line.times.forEach((t, i) => {
        const value = line.values[i];
        if (drawable(value)) path.push(`${across(t).toFixed(1)},${down(value).toFixed(1)}`);
      });
      svg.append(element("polyline", { class: `line ${line.class}`, points: path.join(" ") }));
    }
  }

  return { draw };
})();
