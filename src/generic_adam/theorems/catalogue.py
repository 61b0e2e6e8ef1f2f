"""Every theorem that the certificate asks, in the order in which it asks."""

from __future__ import annotations

from difflib import get_close_matches

from generic_adam.errors import TheoremError
from generic_adam.theorems.amsgrad import RunningMaximum
from generic_adam.theorems.clipping import Clipped, FullBatch
from generic_adam.theorems.decay import Decay
from generic_adam.theorems.defossez import Defossez
from generic_adam.theorems.delayed import Delayed
from generic_adam.theorems.epsilon import Epsilon, Weighted
from generic_adam.theorems.mukkamala_hein import MukkamalaHein
from generic_adam.theorems.published import Reddi2018, RobbinsMonro
from generic_adam.theorems.regret import Regret
from generic_adam.theorems.theorem import Confidence, Reported, Theorem
from generic_adam.theorems.zou2019 import Zou2019

THEOREMS: tuple[Theorem, ...] = (
    Zou2019(),
    Weighted(),
    Epsilon(),
    Decay(),
    RunningMaximum(),
    Delayed(),
    Clipped(),
    FullBatch(),
    RobbinsMonro(),
    Regret(),
    MukkamalaHein(),
    Reddi2018(),
    Defossez(),
)

REPORTED: tuple[Reported, ...] = (
    Reported(
        "zhang2022",
        'Zhang, Chen, Shi, Sun, Luo, "Adam Can Converge Without Any Modification on Update Rules", NeurIPS 2022',
        "Adam with constant beta and theta, eta/sqrt t, n mini-batches sampled uniformly",
        "a neighbourhood is reached if theta exceeds a threshold of order 1 - 1/n^5 that depends on your data",
        Confidence.PUBLISHED,
    ),
    Reported(
        "shi2021",
        'Shi, Li, Hong, Sun, "RMSprop Converges with Proper Hyper-parameter", ICLR 2021',
        "RMSProp with constant theta, eta/sqrt t, shuffled mini-batches",
        "a neighbourhood is reached if theta exceeds a threshold that depends on the number of batches",
    ),
    Reported(
        "li2023",
        'Li, Rakhlin, Jadbabaie, "Convergence of Adam Under Relaxed Assumptions", NeurIPS 2023',
        "Adam with bias correction, learning rate and 1 - beta of the order of the squared accuracy",
        "a small gradient is reached under relaxed smoothness; the numerical constants are not given",
        Confidence.PUBLISHED,
    ),
    Reported(
        "wang2023",
        'Wang, Fu, Zhang, Zheng, Chen, "Closing the Gap Between the Upper Bound and Lower Bound of Adam", NeurIPS 2023',
        "Adam with constants tuned to the horizon, affine noise",
        "the order T^(-1/4) up to logarithms for the first power of the gradient; constants not at hand",
    ),
    Reported(
        "xie_li2024",
        'Xie, Li, "Implicit Bias of AdamW: l_inf Norm Constrained Optimization", ICML 2024, Theorem 1.1',
        "AdamW with exact gradients, beta <= theta, learning rates that never rise and sum to infinity",
        "if the iterates converge, their limit is a KKT point of the loss over |x|_inf <= 1/lambda",
        Confidence.PUBLISHED,
    ),
)
"""Published statements that are cited and never certify: constants or the text itself are not at hand."""


def theorem_named(name: str) -> Theorem:
    """The theorem of that name, capitals or not.

    Raises:
        TheoremError: there is none; the message offers the closest name.
    """
    known = {one.name.lower(): one for one in THEOREMS}
    if name.lower() in known:
        return known[name.lower()]
    close = get_close_matches(name.lower(), known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"expected one of {', '.join(known)}"
    raise TheoremError(f"no theorem is called {name!r}; {hint}")
