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

  /** lr_t: t/warmup of the peak up to the warm-up's last step, then constant, a line or half a cosine to `end` of it. */
  function rate({ lr, warmup, decay, end, steps }, t) {
    if (t <= warmup) return (lr * t) / warmup;
    const done = (t - warmup) / (steps - warmup);
    if (decay === "linear") return lr * (1 - (1 - end) * done);
    if (decay === "cosine") return lr * (end + ((1 - end) * (1 + Math.cos(Math.PI * done))) / 2);
    return lr;
  }

  /** The shares s and zeta that make (constant + sum paid/share) / (1 - sum of shares) least: Dinkelbach's iteration. */
  function leastRatio(constant, paid) {
    const used = paid.filter((one) => one > 0);
    let shares = used.map(() => 1 / (2 * used.length));
    let price = Infinity;
    for (let round = 0; round < 100; round++) {
      const above = used.reduce((sum, one, i) => sum + one / shares[i], constant);
      const below = shares.reduce((left, share) => left - share, 1);
      const ratio = above / below;
      if (!(ratio > 0 && ratio < price * (1 - 1e-14))) break;
      price = ratio;
      shares = used.map((one) => Math.max(Math.sqrt(one / price), 1e-18));
    }
    return { noise: price, kept: shares.reduce((left, share) => left - share, 1) };
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
    let [Q, H, Y, laterShare, weight] = [0, 0, 0, 0, 0];
    const top = [0, 0, 0, 0]; // least non-increasing majorants, from the right
    const sums = [0, 0, 0, 0]; // first, second, drift, growth
    let after = grown(steps);
    for (let t = steps; t >= 1; t--) {
      const alpha = (rate(choice, t) * Math.sqrt(corrected(t))) / -Math.expm1(t * momentum);
      const nextQ = Q;
      Q = alpha + rho * nextQ;
      H = lengths[t] * alpha * (Q - alpha / 2) + rho * H;
      Y = lengths[t] * nextQ * laterShare + rho * Y;
      weight += gain * Q;
      const now = [(Q * gain) / Math.sqrt(q), Q * rho * Math.sqrt(squares[t - 1]), (gain * H) / q, (gain * Y) / q];
      const before = t === 1 ? 0 : grown(t - 1);
      for (let i = 0; i < 4; i++) {
        if (!(now[i] <= top[i])) top[i] = now[i];
        sums[i] += top[i] * (after - before);
      }
      after = before;
      // s_t = 1 - sqrt(theta) e_(t-1)/e_t, without the cancellation; y_1 = 0
      const surplus = q / corrected(t);
      const share = t === 1 ? 0 : surplus / (1 + Math.sqrt(1 - surplus));
      const e = eps * Math.sqrt(corrected(t));
      laterShare = ((rho * share) ** 2 * (e + GRADIENT * Math.sqrt(q))) / (2 * gain);
    }
    if (!(weight > 0) || !sums.every(Number.isFinite)) return { noise: Infinity, gap: Infinity, drift: Infinity };
    const [first, second, drift, growth] = sums;
    const best = leastRatio(second / weight, [first / weight, growth / (GRADIENT * weight)]);
    const divisor = best.kept * weight;
    return { noise: best.noise, gap: 1 / divisor, drift: drift / divisor };
  }

  /** Where noise and drift / (lr d L / G_1) of a constant rate end as T grows: theta has to be above beta^2. */
  function floor({ beta, theta }) {
    const q = 1 - theta;
    if (theta <= beta * beta) return Infinity;
    const rho = beta / Math.sqrt(theta);
    const first = -Math.log1p(-q) / Math.sqrt(q);
    const share = 1 - Math.sqrt(theta);
    const growth = ((share * rho) ** 2 * first) / (2 * (1 - rho) ** 2);
    return leastRatio((first * rho) / Math.sqrt(1 - rho * rho), [first, growth]).noise;
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
