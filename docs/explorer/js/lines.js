"use strict";

/* What to type to get the same answers from the library: the paper's theorem alone on the choice, and Adam as it is shipped. */
var Lines = (() => {
  const alpha = ({ eta, s }) => (s === 0 ? `${eta}` : `${eta}/t^${s}`);
  const theta = ({ c, K, r }) => `1 - ${c}/max(t, ${K})^${r}`;

  const python = (choice) =>
    [
      "import generic_adam as ga",
      `m = ga.Method(alpha="${alpha(choice)}", beta=${choice.beta}, theta="${theta(choice)}")`,
      'print(ga.certify(m, theorem="zou2019").explain())',
    ].join("\n");

  const commandLine = (choice) =>
    `generic-adam check --alpha "${alpha(choice)}" --beta ${choice.beta} --theta "${theta(choice)}" --theorem zou2019`;

  const shipped = ({ lr, beta1, beta2, eps, steps, warmup, decay, end }) => {
    const least = decay === "constant" ? "" : ` --min-lr ${Number((lr * end).toPrecision(12))}`;
    const rate = `--lr ${lr} --warmup ${warmup} --decay ${decay}${least}`;
    return `generic-adam check ${rate} --betas ${beta1},${beta2} --eps ${eps} --steps ${steps}`;
  };

  return { alpha, theta, python, commandLine, shipped };
})();
