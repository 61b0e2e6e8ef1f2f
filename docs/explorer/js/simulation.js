"use strict";

/*
 * The counterexample of Reddi, Kale and Kumar on [-1, 1]: f_t(x) = 1010 x with probability 0.01, -10 x otherwise.
 * x = -1 is the best fixed point and x = +1, where every run starts, the worst.
 *
 * Everything is inside one function, because the worker is built from its source text: that way the page needs no
 * second request, and works from a disk as well as from a web server.
 */
function makeSimulation() {
  const RARE = 1010;
  const COMMON = -10;
  const PROBABILITY = 0.01;

  /** Uniform number in [0, 1) for a seed and a step: a mix of their 32 bits, so any step can be had by itself. */
  function uniform(seed, t) {
    let bits = (Math.imul(t, 0x9e3779b9) + Math.imul(seed, 0x85ebca6b)) | 0;
    bits = Math.imul(bits ^ (bits >>> 16), 0x21f0aaad);
    bits = Math.imul(bits ^ (bits >>> 15), 0x735a2d97);
    return ((bits ^ (bits >>> 15)) >>> 0) / 4294967296;
  }

  const gradient = (seed, t) => (uniform(seed, t) < PROBABILITY ? RARE : COMMON);

  /** About `count` different steps from 1 to `steps`, evenly spread on a logarithmic axis, both ends included. */
  function logarithmicTimes(steps, count) {
    const times = new Set([1, steps]);
    for (let i = 0; i < count; i++) times.add(Math.round(Math.pow(steps, i / (count - 1))));
    return [...times].sort((a, b) => a - b);
  }

  /**
   * Generic Adam with m_0 = 0, v_0 = epsilon, x_1 = 1, projected to [-1, 1]; at each recorded t, the x_t that meets
   * f_t, the regret R(t)/t up to and with f_t, and the ratio of condition 4, summed with Kahan's correction.
   */
  function simulate({ eta, s, beta, c, K, r, epsilon, seed, steps, records }) {
    const times = logarithmicTimes(steps, records);
    const position = new Float64Array(times.length);
    const regret = new Float64Array(times.length);
    const ratio = new Float64Array(times.length);
    let [x, m, v, next] = [1, 0, epsilon, 0];
    let [loss, gradients, sum, lost] = [0, 0, 0, 0];
    for (let t = 1; t <= steps; t++) {
      const alpha = eta * Math.pow(t, -s);
      const fresh = c * Math.pow(t > K ? t : K, -r); // 1 - theta_t
      const g = gradient(seed, t);
      const met = x;
      loss += g * x;
      gradients += g;
      v = (1 - fresh) * v + fresh * g * g;
      m = beta * m + (1 - beta) * g;
      x -= (alpha * m) / Math.sqrt(v);
      if (x > 1) x = 1;
      else if (x < -1) x = -1;
      const term = alpha * Math.sqrt(fresh) - lost;
      const grown = sum + term;
      lost = grown - sum - term;
      sum = grown;
      if (t === times[next]) {
        position[next] = met;
        regret[next] = (loss + Math.abs(gradients)) / t;
        ratio[next] = sum / (t * alpha);
        next += 1;
      }
    }
    return { times, position, regret, ratio, final: x };
  }

  return { gradient, simulate };
}

var Simulation = makeSimulation();
