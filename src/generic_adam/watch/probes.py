"""Probes: what a look at the state cannot tell and a mini-batch at the present weights can."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from generic_adam.extras import from_extra

with from_extra("torch"):
    import torch
    from torch import Tensor
    from torch.nn.attention import SDPBackend, sdpa_kernel

_PRODUCTS = 10


def curvature(probe: Callable[[], Tensor], parameters: Sequence[Tensor], scales: Sequence[Tensor]) -> float:
    r"""Return the largest curvature of the loss in the metric of the steps, from below.

    It is the largest Rayleigh quotient of :math:`P^{-1/2} H P^{-1/2}` over ten power iterations, P = sqrt(v) + e.

    Args:
        probe: returns the loss of a mini-batch at the present weights, with its graph.
        parameters: the weights.
        scales: P of each.
    """
    devices = sorted({p.device.index for p in parameters if p.device.type == "cuda" and p.device.index is not None})
    # Nothing of the run may depend on whether it is looked at: dropout draws as it would have.
    # Of attention's kernels the plain one alone can be differentiated twice.
    with torch.random.fork_rng(devices), torch.enable_grad(), sdpa_kernel(SDPBackend.MATH):
        gradients = torch.autograd.grad(probe(), parameters, create_graph=True, allow_unused=True)
        used = [k for k, g in enumerate(gradients) if g is not None and g.requires_grad]
        if not used:
            raise RuntimeError("the gradient of its loss has no graph")
        roots = [scales[k].detach().sqrt() for k in used]
        outputs = [gradients[k] for k in used]
        vector = [g.detach() / root for g, root in zip(outputs, roots, strict=True)]
        largest = -math.inf
        for _ in range(_PRODUCTS):
            norm = torch.sqrt(sum(((v * v).sum() for v in vector), start=torch.zeros((), device=vector[0].device)))
            if not float(norm) > 0:
                break
            vector = [v / norm for v in vector]
            seen = torch.autograd.grad(
                outputs,
                [parameters[k] for k in used],
                [v / root for v, root in zip(vector, roots, strict=True)],
                retain_graph=True,
                allow_unused=True,
            )
            product = [
                torch.zeros_like(v) if s is None else s / root for v, s, root in zip(vector, seen, roots, strict=True)
            ]
            largest = max(largest, float(sum((v * s).sum() for v, s in zip(vector, product, strict=True))))
            vector = product
    return largest
