"use strict";

/*
 * The sufficient condition on the power family
 *
 *     alpha_t = eta / t^s,   beta_t = beta,   theta_t = 1 - c / max(t, K)^r,   r >= 0, s >= 0, c > 0, K = 1, 2, ...
 *
 * decided exactly. Exponents and c arrive as numbers with at most four decimals and are compared as whole numbers
 * of ten-thousandths, so that the borders r = 2s and r/2 + s = 1 are met and not missed by a rounding.
 */
var PowerFamily = (() => {
  const UNIT = 10000;
  const inUnits = (value) => Math.round(value * UNIT);

  /** 1 - theta_t = c / max(t, K)^r, without the cancellation of going through theta. */
  const complement = (choice, t) => choice.c * Math.pow(Math.max(t, choice.K), -choice.r);

  /** Does c equal K^r? A whole c > 1 can only do so as K = c^m with m r = 1; c = 1 needs K = 1 or r = 0. */
  function startsAtZero({ c, K, r }) {
    if (K === 1 || r === 0) return inUnits(c) === UNIT;
    if (c <= 1 || !Number.isInteger(c)) return false;
    let exponent = 0;
    let power = 1;
    while (power < K) {
      power *= c;
      exponent += 1;
    }
    return power === K && exponent * inUnits(r) === UNIT;
  }

  const holds = (number, reason) => ({ number, status: "holds", reason, witness: null });
  const fails = (number, reason, witness = null) => ({ number, status: "fails", reason, witness });

  function conditionOne({ beta }) {
    return beta >= 0 && beta < 1
      ? holds(1, `β_t = ${beta} for every t, below 1.`)
      : fails(1, `β_t = ${beta} is not in [0, 1).`, 1);
  }

  function conditionTwo(choice) {
    const first = complement(choice, 1);
    if (startsAtZero(choice)) return fails(2, "θ₁ = 0, and it must be above 0.", 1);
    if (first >= 1) return fails(2, `θ₁ = ${shorten(1 - first)}, and it must be above 0.`, 1);
    return choice.r === 0
      ? holds(2, `θ_t = ${shorten(1 - first)} for every t, in (0, 1).`)
      : holds(2, `θ_t rises from ${shorten(1 - first)} towards 1 and stays below it.`);
  }

  function conditionThree({ r, s }) {
    const growth = inUnits(r) - 2 * inUnits(s); // twice the exponent of chi_t
    const exponent = fraction(growth, 2 * UNIT);
    if (growth > 0) return fails(3, `χ_t grows like t^(${exponent}): r is above 2s.`, `t^(${exponent})`);
    return growth === 0
      ? holds(3, "χ_t = α_t / √(1 − θ_t) tends to a constant and never rises: r = 2s.")
      : holds(3, `χ_t = α_t / √(1 − θ_t) falls like t^(${exponent}): r is below 2s.`);
  }

  function conditionFour(choice) {
    const { r, s, c } = choice;
    if (inUnits(s) >= UNIT) {
      return fails(4, s === 1 ? "T α_T stays constant: s is not below 1." : "T α_T tends to 0: s is above 1.");
    }
    if (inUnits(r) === 0) {
      const floor = Math.sqrt(c) / (1 - s);
      return fails(4, `The ratio tends to √(1 − θ) / (1 − s) = ${shorten(floor)}, not to 0: θ_t is constant.`);
    }
    return holds(4, `The ratio falls like ${rateOfRatio(choice).text}.`);
  }

  /** Growth T^power (log T)^log of the ratio in condition 4, for r > 0 and s < 1. */
  function rateOfRatio({ r, s }) {
    const border = inUnits(r) + 2 * inUnits(s) - 2 * UNIT; // sign of r/2 + s - 1
    const twice = border < 0 ? -inUnits(r) : 2 * (inUnits(s) - UNIT); // twice the power of T
    const log = border === 0 ? 1 : 0;
    const power = fraction(twice, 2 * UNIT);
    return { power, log, text: `T^(${power})${log ? " log T" : ""}` };
  }

  /** The whole verdict: four conditions, the rate and the constant C0. */
  function certify(choice) {
    const conditions = [conditionOne, conditionTwo, conditionThree, conditionFour].map((check) => check(choice));
    const certified = conditions.every((condition) => condition.status === "holds");
    return {
      verdict: certified ? "certified" : "not certified",
      conditions,
      rate: certified ? rateOfRatio(choice) : null,
      // t^-s falls up to K and t^(r/2 - s) does not rise after it, so chi_t is its own running minimum.
      C0: conditions[2].status === "holds" ? 1 : Infinity,
    };
  }

  /** numerator / denominator in lowest terms, as text: "-1/2", "1". */
  function fraction(numerator, denominator) {
    const divisor = greatestCommonDivisor(Math.abs(numerator), denominator);
    const below = denominator / divisor;
    return below === 1 ? `${numerator / divisor}` : `${numerator / divisor}/${below}`;
  }

  const greatestCommonDivisor = (a, b) => (b === 0 ? a : greatestCommonDivisor(b, a % b));

  /** A number for reading: six significant digits, no trailing zeros. */
  const shorten = (value) => String(Number(value.toPrecision(6)));

  return { certify, complement, shorten };
})();
