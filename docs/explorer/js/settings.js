"use strict";

/*
 * The seven parameters and the seed: their ranges, how a slider's position maps to a value, how a state is written
 * into the address (#r=1&s=0.5&...) and read back.
 */
var Settings = (() => {
  const linear = { toSlider: (value) => value, fromSlider: (position) => position };
  const logarithmic = { toSlider: Math.log10, fromSlider: (position) => Math.pow(10, position) };
  // theta is felt through 1 - theta: 0.9, 0.99 and 0.999 are equally far apart on the slider.
  const fromOne = {
    toSlider: (value) => -Math.log10(1 - value),
    fromSlider: (position) => 1 - Math.pow(10, -position),
  };

  const PARAMETERS = {
    r: { min: 0, max: 2.2, step: 0.01, decimals: 4, initial: 1, scale: linear },
    s: { min: 0, max: 1.2, step: 0.01, decimals: 4, initial: 0.5, scale: linear },
    c: { min: 0.0001, max: 2, step: 0.05, decimals: 4, initial: 1, scale: logarithmic },
    K: { min: 1, max: 10000, step: 0.05, decimals: 0, initial: 2, scale: logarithmic },
    eta: { min: 0.0001, max: 10, step: 0.05, decimals: 4, initial: 0.5, scale: logarithmic },
    beta: { min: 0, max: 0.999, step: 0.01, decimals: 4, initial: 0.9, scale: linear },
    theta: { min: 0.5, max: 0.9999, step: 0.05, decimals: 4, initial: 0.99, scale: fromOne },
  };
  const SEED = { min: 1, max: 999999, decimals: 0, initial: 1 };
  const ALL = { ...PARAMETERS, seed: SEED };

  const round = (value, decimals) => Number(value.toFixed(decimals));

  /** The nearest value the parameter can take, or null when the text is no number. */
  function admit(name, text) {
    const { min, max, decimals } = ALL[name];
    const value = Number(text);
    if (String(text).trim() === "" || !Number.isFinite(value)) return null;
    return round(Math.min(max, Math.max(min, value)), decimals);
  }

  /** Value for a slider position: two significant digits on a curved scale, so that a drag gives plain numbers. */
  function fromSlider(name, position) {
    const { scale } = PARAMETERS[name];
    const value = scale.fromSlider(Number(position));
    if (scale === linear) return admit(name, value);
    const part = scale === fromOne ? 1 - value : value;
    const plain = Number(part.toPrecision(2));
    return admit(name, scale === fromOne ? 1 - plain : plain);
  }

  const initial = () => Object.fromEntries(Object.entries(ALL).map(([name, { initial: value }]) => [name, value]));

  const toHash = (state) => "#" + Object.keys(ALL).map((name) => `${name}=${state[name]}`).join("&");

  /** State written in an address; what is missing or no number keeps its initial value. */
  function fromHash(hash) {
    const given = new URLSearchParams(hash.replace(/^#/, ""));
    const state = initial();
    for (const name of Object.keys(ALL)) {
      const value = given.has(name) ? admit(name, given.get(name)) : null;
      if (value !== null) state[name] = value;
    }
    return state;
  }

  return { PARAMETERS, admit, fromSlider, initial, toHash, fromHash };
})();
