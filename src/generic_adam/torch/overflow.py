"""Second moments that have overflowed, and their way back.

The square of a finite float32 gradient above 1.8e19 is infinite, and so is v from then on: the update is m /
inf = 0, the parameter stays finite, and it stays where it is for ever. In exact arithmetic v would be huge
and, where theta < 1, be forgotten after a while. So now and then an infinite v becomes the largest number of
its type, from which it can decay, as soon as m is small enough for the update to be at most 1.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

# One look at v in this many steps costs 1/7000 of the memory traffic of the steps themselves.
STEPS_BETWEEN_LOOKS = 1024
_PIECE = 2**17


def revive(momenta: Sequence[Tensor], second_moments: Sequence[Tensor]) -> None:
    """Replace infinite second moments by the largest finite number, where the momentum has become small."""
    largest = [v.amax() for v in second_moments if v.numel()]
    if not largest or not bool(torch.isinf(torch.stack(largest)).any()):
        return
    for m, v in zip(momenta, second_moments, strict=True):
        limit = torch.finfo(v.dtype).max
        small = limit**0.5
        # In pieces, so that the masks stay small.
        for m_piece, v_piece in zip(_flat(m).split(_PIECE), _flat(v).split(_PIECE), strict=True):
            v_piece.masked_fill_(torch.isinf(v_piece) & (m_piece.abs() <= small), limit)


def _flat(tensor: Tensor) -> Tensor:
    return tensor.view(-1) if tensor.is_contiguous() else tensor.as_strided((tensor.numel(),), (1,))
