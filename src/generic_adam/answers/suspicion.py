"""Signs that a run is RL or a GAN: the loss moves, no theorem covers it, and the user is asked, never reassured."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from generic_adam.methods import Algorithm

_SIGNS: Final = {
    "RL": re.compile(
        r"\b(?:gym|gymnasium|stable_baselines3|sb3_contrib|rllib|tianshou|torchrl|cleanrl|pettingzoo|pufferlib|envpool)\b"
        r"|\b(?:PPO|GRPO|RLOO|OnlineDPO|A2C|SAC|TD3|DQN)(?:Config|Trainer|Agent)?\b"
        r"|\b(?:cliprange|clip_range|kl_coef|vf_coef|ent_coef|num_ppo_epochs|gae_lambda|num_generations|ppo_epochs)\b"
    ),
    "a GAN": re.compile(
        r"(?i:discriminator|\bw?gan\b|\bwgan_gp\b|\bn_critic\b|gradient_penalty)|\b(?:netD|netG|optimizer_?[DG]|opt_?[DG])\b"
    ),
}


@dataclass(frozen=True)
class Suspicion:
    """A kind of training that the input looks like.

    Attributes:
        kind: "RL" or "a GAN".
        why: the sign.
    """

    kind: Literal["RL", "a GAN"]
    why: str


def suspected(x: Algorithm, source: str = "") -> Suspicion | None:
    """Return the kind of training with a moving loss that the input looks like; None for no sign.

    Args:
        x: the algorithm: betas of 0.5 and 0.999 are those of GANs, Adam's eps of 1e-5 is that of PPO.
        source: the text of the script or the file that it was read from.
    """
    for kind, pattern in _SIGNS.items():
        if found := pattern.search(source):
            return Suspicion(kind, f"{found[0]!r} in the source")  # type: ignore[arg-type]
    beta, theta = x.method.beta, x.method.theta
    if not (x.preconditioned and x.label.startswith("Adam") and beta.is_constant and theta.is_constant):
        return None
    beta1, beta2, eps = float(beta(1)), float(theta(1)), float(x.eps(10**6))
    if beta1 == 0.5 or (beta1 == 0 and beta2 in {0.9, 0.99, 0.999}):
        return Suspicion("a GAN", f"betas {beta1:g}, {beta2:g}")
    if (beta1, beta2) == (0.9, 0.999) and abs(eps - 1e-5) < 1e-7 and str(x.decay) == "0":
        return Suspicion("RL", "eps 1e-5, as in PPO")
    return None
