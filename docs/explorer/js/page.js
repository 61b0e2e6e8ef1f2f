"use strict";

/* Joins the parts: a state, the controls that change it, and everything that shows it. */
(() => {
  const STEPS = 1000000;
  const RECORDS = 420;
  const EPSILON = 1e-8;
  const find = (name) => document.getElementById(`explorer-${name}`);

  let state = Settings.fromHash(location.hash);
  const plane = Plane.create(find("plane"), (r, s) => change({ r, s }));
  const background = Background.start(makeSimulation, "simulate", showRuns);
  const horizon = Background.start(makeHorizon, "read", showHorizon);

  /** The comparison: the same step size and momentum with a constant theta, which is r = 0 and c = 1 - theta. */
  const constantTheta = () => ({ ...state, r: 0, K: 1, c: Number((1 - state.theta).toFixed(4)) });

  function change(news) {
    state = { ...state, ...news };
    history.replaceState(null, "", Settings.toHash(state));
    show();
  }

  // Controls ------------------------------------------------------------------------------------------------------
  for (const [name, { min, max, step, scale }] of Object.entries(Settings.PARAMETERS)) {
    const slider = find(`${name}-slider`);
    const box = find(name);
    Object.assign(slider, { min: scale.toSlider(min), max: scale.toSlider(max), step: "any" });
    slider.addEventListener("input", () => change({ [name]: Settings.fromSlider(name, slider.value) }));
    slider.addEventListener("keydown", (event) => {
      const direction = { ArrowRight: 1, ArrowUp: 1, PageUp: 10, ArrowLeft: -1, ArrowDown: -1, PageDown: -10 }[event.key];
      if (direction === undefined) return;
      event.preventDefault(); // a slider with step "any" would move by too little
      let value = state[name];
      for (let tries = 1; value === state[name] && tries <= 10; tries++) {
        value = Settings.fromSlider(name, scale.toSlider(state[name]) + direction * tries * step);
      }
      change({ [name]: value });
    });
    box.addEventListener("change", () => {
      const wrong = Settings.complaint(name, box.value);
      mark(name, wrong);
      if (!wrong) change({ [name]: Settings.admit(name, box.value) });
    });
  }
  find("decay").addEventListener("change", () => change({ decay: find("decay").value }));
  for (const presets of ["presets", "recipes"]) {
    find(presets).addEventListener("click", (event) => {
      const settings = event.target.dataset?.settings;
      if (settings) change(Settings.fromHash(settings, state));
    });
  }

  /** Say beside a box what is wrong with it; nothing is computed from it until that is put right. */
  function mark(name, wrong) {
    find(name).setAttribute("aria-invalid", String(wrong !== ""));
    find(`${name}-wrong`).textContent = wrong;
  }
  find("draw").addEventListener("click", () => change({ seed: (state.seed % 999999) + 1 }));
  addEventListener("hashchange", () => {
    state = Settings.fromHash(location.hash);
    find("notice").textContent = Settings.complaints(location.hash).join("; ");
    show();
  });
  for (const name of ["python", "command", "shipped", "link"]) {
    find(`copy-${name}`).addEventListener("click", () => copy(name));
  }

  /** Show a command whose options no end of a line parts from their hyphens. */
  function showCommand(node, text) {
    const kept = text.split(/(--[\w-]+)/).map((part, place) => {
      if (place % 2 === 0) return part;
      const option = document.createElement("span");
      option.className = "option";
      option.textContent = part;
      return option;
    });
    node.replaceChildren(...kept);
  }

  async function copy(name) {
    const text = name === "link" ? location.href : find(name).textContent;
    const said = find("copied");
    try {
      await navigator.clipboard.writeText(text);
      said.textContent = "Copied.";
    } catch {
      said.textContent = name === "link" ? `Copy this: ${text}` : "The browser did not allow copying: select the text.";
    }
  }

  // Views ---------------------------------------------------------------------------------------------------------
  function show() {
    const certificate = PowerFamily.certify(state);
    for (const [name, { scale }] of Object.entries(Settings.PARAMETERS)) {
      const slider = find(`${name}-slider`);
      slider.value = scale.toSlider(state[name]);
      slider.setAttribute("aria-valuetext", String(state[name]));
      if (document.activeElement !== find(name) || !Settings.complaint(name, find(name).value)) {
        find(name).value = String(state[name]);
        mark(name, "");
      }
    }
    find("decay").value = state.decay;
    showReading();
    plane.show(state.r, state.s, certificate.verdict === "certified");
    showVerdict(certificate);
    const failing = PowerFamily.certify(constantTheta()).conditions.find(({ status }) => status === "fails");
    Notation.write(find("comparison"), `Not certified, condition ${failing.number}: ${failing.reason}`);
    find("python").textContent = Lines.python(state);
    showCommand(find("command"), Lines.commandLine(state));
    showCommand(find("shipped"), Lines.shipped(state));
    background.request(
      [state, constantTheta()].map((choice) => ({
        ...choice,
        epsilon: EPSILON,
        steps: STEPS,
        records: RECORDS,
      })),
    );
  }

  function showVerdict({ verdict, conditions, rate, C0 }) {
    const banner = find("verdict");
    banner.dataset.verdict = verdict;
    banner.querySelector("strong").textContent = verdict === "certified" ? "Certified" : "Not certified";
    Notation.write(
      banner.querySelector("span"),
      verdict === "certified"
        ? `The bound on the gradient falls like ${rate.text}.`
        : "The theorem does not apply. That is no proof of divergence.",
    );
    find("rate").dataset.value = rate ? rate.text : "";
    Notation.write(find("rate"), rate ? rate.text : "none");
    find("c0").textContent = Number.isFinite(C0) ? String(C0) : "∞";
    for (const { number, status, reason } of conditions) {
      const row = find(`condition-${number}`);
      row.dataset.status = status;
      row.querySelector(".status").textContent = status;
      Notation.write(row.querySelector(".reason"), reason);
    }
  }

  // Adam at a horizon ---------------------------------------------------------------------------------------------
  function showReading() {
    const { lr, beta1, beta2, eps, steps, warmup, decay, end } = state;
    const wrong =
      decay !== "constant" && warmup >= steps
        ? `warm-up: expected fewer than the ${steps.toLocaleString("en")} steps, got ${warmup.toLocaleString("en")}`
        : "";
    find("horizon-wrong").textContent = wrong;
    find("horizon").classList.toggle("stale", wrong !== "");
    if (!wrong) horizon.request([{ lr, beta: beta1, theta: beta2, eps, steps, warmup, decay, end, key: Settings.toHash(state) }]);
  }

  function showHorizon({ results: [{ noise, gap, drift, floor, times, rates }], milliseconds }) {
    const number = (value) => (Number.isFinite(value) ? PowerFamily.shorten(value) : "∞");
    for (const [name, value] of Object.entries({ noise, gap, drift })) {
      find(name).textContent = number(value);
      find(name).dataset.value = String(value);
    }
    // The label takes the whole bound, for a problem with a gap and a curvature of 1.
    const parts = { noise, start: gap, curvature: drift };
    const whole = noise + gap + drift;
    const largest = Object.keys(parts).reduce((one, other) => (parts[other] > parts[one] ? other : one));
    const useful = whole < 1;
    const banner = find("reading");
    banner.dataset.verdict = useful ? "certified" : "not certified";
    banner.querySelector("strong").textContent = useful ? "Useful" : "No useful guarantee";
    Notation.write(
      banner.querySelector("span"),
      `After ${state.steps.toLocaleString("en")} steps: X_w / G_1 ≤ ${number(noise)} + ${number(gap)} (f(x_1) − f*) / G_1 + ${number(drift)} d L / G_1` +
        (useful ? "." : `, ${number(whole)} where both are 1: no better than the trivial bound. The largest part is the ${largest}.`),
    );
    Notation.write(
      find("floor"),
      `With constant θ the noise does not vanish: at a constant rate it tends to ${number(floor)} as T grows, ` +
        (floor < 1 ? "which is below 1. " : "which is not below 1: raise θ or lower β. ") +
        `Computed in ${Math.round(milliseconds)} ms.`,
    );
    Chart.draw(find("rate-chart"), [{ times, values: rates, class: "yours" }], { low: 0, high: Math.max(...rates) * 1.05, plain: true });
    find("horizon").dataset.ready = Settings.toHash(state);
  }

  function showRuns({ results: [yours, adam], milliseconds }) {
    const lines = (key) => [
      { times: adam.times, values: adam[key], class: "adam" },
      { times: yours.times, values: yours[key], class: "yours" },
    ];
    Chart.draw(find("position"), lines("position"), { low: -1.08, high: 1.08 });
    Chart.draw(find("regret"), lines("regret"), { logarithmic: true });
    Chart.draw(find("ratio-chart"), lines("ratio"), { logarithmic: true });
    const last = yours.times.length - 1;
    const told = (run) =>
      Number.isFinite(run.final)
        ? `is at x = ${PowerFamily.shorten(run.final)} with R(T)/T = ${PowerFamily.shorten(run.regret[last])}`
        : "stopped, because a θ_t below 0 made v_t negative";
    find("ratio").textContent = PowerFamily.shorten(yours.ratio[last]);
    find("ratio").dataset.value = String(yours.ratio[last]);
    const summary =
      `After ${STEPS.toLocaleString("en")} steps: your choice ${told(yours)}; constant θ = ${state.theta} ${told(adam)}. ` +
      `Best x is −1, worst is +1. Two runs in ${Math.round(milliseconds)} ms.`;
    Notation.write(find("summary"), summary);
    find("simulation").dataset.ready = Settings.toHash(state);
  }

  find("notice").textContent = Settings.complaints(location.hash).join("; ");
  show();
})();
