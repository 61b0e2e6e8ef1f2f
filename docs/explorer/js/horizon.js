"use strict";

/*
 * Theorem E at a horizon, for Adam as torch has it: constant beta and theta, bias correction, eps beside the root,
 *
 *     alpha_t = lr_t sqrt(1 - theta^t) / (1 - beta^t),   e_t = eps sqrt(1 - theta^t),   rho = beta / sqrt(theta),
 *
 * and a rate lr_t that warms up and decays. X_w / G_1 <= noise + gap (f(x_1) - f*) / G_1 + drift d L / G_1: three
 * numbers that need the sequences alone. Everything is inside one function, because a worker is built from its text.
 */
function makeHorizon() {
  const GRADIENT = 1e-3; // G_k in the logarithm and beside eps; the numbers barely depend on it
  const LEMMA_N = (1 + Math.sqrt(5)) / (4 * Math.sqrt(2)); // the cost of a divisor that contains the new gradient
  const LEMMA_N_ANY_EPS = (1 + Math.sqrt(2)) / 2; // the same where eps is large against the gradients

  /** lr_t: t/warmup of the peak up to the warm-up's last step, then constant, a line or half a cosine to `end` of it. */
  function rate({ lr, warmup, decay, end, steps }, t) {
    if (t <= warmup) return (lr * t) / warmup;
    const done = (t - warmup) / (steps - warmup);
    if (decay === "linear") return lr * (1 - (1 - end) * done);
    if (decay === "cosine") return lr * (end + ((1 - end) * (1 + Math.cos(Math.PI * done))) / 2);
    return lr;
  }

  /** The three numbers after `steps` steps. */
  function threeNumbers(choice) {
    const { beta, theta, eps, steps } = choice;
    const q = 1 - theta;
    const rho = beta / Math.sqrt(theta);
    const gain = 1 - beta;
    const decrease = -Math.log1p(-q);
    const ratio = (theta * GRADIENT * GRADIENT) / (eps * eps * q); // theta_1 G^2 / e_1^2
    const grown = (t) => t * decrease + Math.log(ratio + (1 - ratio) * Math.exp(-t * decrease));
    const corrected = (t) => -Math.expm1(-t * decrease); // 1 - theta^t
    const lengths = new Float64Array(steps + 1); // R_t
    const squares = new Float64Array(steps + 1); // M_t, so that |m_t| <= sqrt(M_t v_t)
    for (let t = 1; t <= steps; t++) {
      lengths[t] = rho * lengths[t - 1] + gain;
      squares[t] = rho * rho * squares[t - 1] + (gain * gain) / q;
    }
    const momentum = beta > 0 ? Math.log(beta) : -Infinity;
    let [Q, H, weight, ofEps] = [0, 0, 0, 0];
    const top = [0, 0, 0]; // least non-increasing majorants, from the right
    const sums = [0, 0, 0, 0]; // new gradient, drift, momentum paid by S, momentum paid by S'
    const added = (t) => (t === 0 ? (eps * Math.sqrt(q)) / Math.sqrt(theta) : eps * Math.sqrt(corrected(t))); // e_0 = e_1/sqrt(theta)
    const root = (t) => GRADIENT * Math.sqrt(t === 0 ? 0 : corrected(t));
    let after = grown(steps);
    for (let t = steps; t >= 1; t--) {
      const alpha = (rate(choice, t) * Math.sqrt(corrected(t))) / -Math.expm1(t * momentum);
      Q = alpha + rho * Q;
      H = lengths[t] * alpha * (Q - alpha / 2) + rho * H;
      weight += gain * Q;
      const large = Math.min(1, added(t) / (Math.sqrt(q) * GRADIENT));
      const price = Math.max(LEMMA_N, LEMMA_N_ANY_EPS * large);
      const inherited = (Q * rho * Math.sqrt(squares[t - 1])) / 2;
      const now = [(price * Q * gain) / Math.sqrt(q), (gain * H) / q, inherited];
      const before = t === 1 ? 0 : grown(t - 1);
      // S'_t - S'_(t-1), the growth of the divisor
      const divisor = 2 * Math.log((root(t) + added(t)) / (root(t - 1) + added(t - 1))) + decrease;
      for (let i = 0; i < 3; i++) {
        if (!(now[i] <= top[i])) top[i] = now[i];
        sums[i] += top[i] * (after - before);
      }
      sums[3] += top[2] * divisor;
      after = before;
      // The share of e_t that is new, without the cancellation, times sqrt(v)/(sqrt(v) + e) before the step.
      const surplus = q / corrected(t);
      const share = t === 1 ? 0 : surplus / (1 + Math.sqrt(1 - surplus));
      ofEps += (2 * inherited * share * root(t - 1)) / (root(t - 1) + added(t - 1));
    }
    if (!(weight > 0) || !sums.every(Number.isFinite)) return { noise: Infinity, gap: Infinity, drift: Infinity };
    const [first, drift, byMoments, byDivisor] = sums;
    return { noise: (first + Math.min(byDivisor, byMoments + ofEps)) / weight, gap: 1 / weight, drift: drift / weight };
  }

  /** Where noise and drift / (lr d L / G_1) of a constant rate end as T grows: theta has to be above beta^2. */
  function floor({ beta, theta }) {
    const q = 1 - theta;
    if (theta <= beta * beta) return Infinity;
    const rho = beta / Math.sqrt(theta);
    const first = -Math.log1p(-q) / Math.sqrt(q);
    return first * (LEMMA_N + rho / Math.sqrt(1 - rho * rho) / 2);
  }

  /** Everything the page shows of a choice, the rate on about 200 steps included. */
  function read(choice) {
    const count = Math.min(choice.steps, 200);
    const times = Array.from({ length: count }, (_, i) => Math.round(1 + ((choice.steps - 1) * i) / Math.max(count - 1, 1)));
    return { ...threeNumbers(choice), floor: floor(choice), times, rates: times.map((t) => rate(choice, t)) };
  }

  return { rate, threeNumbers, floor, read };
}

var Horizon = makeHorizon();
