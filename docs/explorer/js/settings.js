"use strict";

/*
 * The parameters and the seed: their ranges, how a slider's position maps to a value, how a state is written into the
 * address (#r=1&s=0.5&...) and read back, and what is said of a value that cannot be.
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
    eta: { symbol: "η", min: 0.0001, max: 10, step: 0.05, decimals: 4, initial: 0.5, scale: logarithmic },
    beta: { symbol: "β", min: 0, max: 0.999, step: 0.01, decimals: 4, initial: 0.9, scale: linear },
    theta: { symbol: "θ", min: 0.5, max: 0.9999, step: 0.05, decimals: 4, initial: 0.99, scale: fromOne },
    // Adam at a horizon.
    lr: { min: 1e-7, max: 1, step: 0.1, initial: 1e-3, scale: logarithmic },
    beta1: { symbol: "β", min: 0, max: 0.999, step: 0.01, decimals: 4, initial: 0.9, scale: linear },
    beta2: { symbol: "θ", min: 0.5, max: 0.999999, step: 0.05, decimals: 6, initial: 0.999, scale: fromOne },
    eps: { symbol: "ε", min: 1e-16, max: 1, step: 0.25, initial: 1e-8, scale: logarithmic },
    steps: { symbol: "T", min: 1, max: 1000000, step: 0.1, decimals: 0, initial: 100000, scale: logarithmic },
    warmup: { symbol: "warm-up", min: 0, max: 100000, step: 100, decimals: 0, initial: 0, scale: linear },
    end: { min: 0, max: 1, step: 0.05, decimals: 4, initial: 0, scale: linear },
  };
  const SEED = { min: 1, max: 999999, decimals: 0, initial: 1 };
  const DECAY = { words: ["constant", "linear", "cosine"], initial: "constant" };
  const ALL = { ...PARAMETERS, seed: SEED, decay: DECAY };

  const round = (value, decimals) => Number(decimals === undefined ? value.toPrecision(6) : value.toFixed(decimals));

  /** The nearest value the parameter can take, or null when the text is none of its words or no number. */
  function admit(name, text) {
    const { min, max, decimals, words } = ALL[name];
    if (words) return words.includes(text) ? text : null;
    const value = Number(text);
    if (String(text).trim() === "" || !Number.isFinite(value)) return null;
    return round(Math.min(max, Math.max(min, value)), decimals);
  }

  /** What is wrong with a text as a parameter's value, called as on the page; empty where nothing is. */
  function complaint(name, text) {
    const { symbol = name, min, max, words, decimals } = ALL[name];
    const wanted = words ? `one of ${words.join(", ")}` : `a ${decimals === 0 ? "whole " : ""}number from ${min} to ${max}`;
    const value = admit(name, text);
    const off = value === null || (!words && Math.abs(Number(text) - value) > 1e-9 * Math.abs(value) + 1e-12);
    return off ? `${symbol}: expected ${wanted}, got ${JSON.stringify(String(text))}` : "";
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

  /** State written in an address; what is missing or no number keeps the value of `base`. */
  function fromHash(hash, base = initial()) {
    const given = new URLSearchParams(hash.replace(/^#/, ""));
    const state = { ...base };
    for (const name of Object.keys(ALL)) {
      const value = given.has(name) ? admit(name, given.get(name)) : null;
      if (value !== null) state[name] = value;
    }
    return state;
  }

  /** What is wrong with an address: values that cannot be, names that are none. */
  function complaints(hash) {
    const given = [...new URLSearchParams(hash.replace(/^#/, ""))];
    return given.map(([name, text]) => (name in ALL ? complaint(name, text) : `${name}: no such parameter`)).filter(Boolean);
  }

  return { PARAMETERS, admit, complaint, complaints, fromSlider, initial, toHash, fromHash };
})();
