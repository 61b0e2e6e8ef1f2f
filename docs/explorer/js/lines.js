"use strict";

/* What to type to get the same answer from the library, in Python and on the command line: the paper's theorem alone. */
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

  return { alpha, theta, python, commandLine };
})();
