"""A method is three sequences: the base learning rate, the momentum and the second-moment parameter."""

from __future__ import annotations

from dataclasses import dataclass

from generic_adam.errors import MethodError
from generic_adam.methods.parameters import ScheduleLike, read_schedule
from generic_adam.methods.validation import check_alpha, check_beta, check_theta
from generic_adam.schedules import Schedule, ScheduleError, theta_from_weights


@dataclass(frozen=True, init=False, repr=False)
class Method:
    r"""One member of Generic Adam (Algorithm 1): the sequences alpha_t, beta_t and theta_t.

    .. math::
        v_t &= \theta_t v_{t-1} + (1 - \theta_t) g_t^2 \\
        m_t &= \beta_t m_{t-1} + (1 - \beta_t) g_t \\
        x_{t+1} &= x_t - \alpha_t m_t / \sqrt{v_t}

    Two methods are equal when their sequences are the same expressions. theta_1 = 0 is allowed here (AdaEMA
    and AdamNC have it); whether the method converges is for :func:`generic_adam.certify` to say.

    Args:
        alpha: the base learning rate, finite and > 0; a schedule may touch 0, which no certificate survives.
        beta: the momentum parameter, 0 <= beta_t < 1.
        theta: the second-moment parameter, 0 <= theta_t < 1.

    Attributes:
        alpha: alpha_t as a schedule.
        beta: beta_t as a schedule.
        theta: theta_t as a schedule.

    Raises:
        MethodError: a sequence cannot be read or leaves its range; the message names it, the t, the value.

    Examples:
        >>> Method(alpha="0.5/sqrt(t)", beta=0.9, theta="1 - 1/max(t, 2)")
        Method(alpha_t = 0.5 / sqrt(t), beta_t = 0.9, theta_t = 1 - 1 / max(t, 2))
    """

    alpha: Schedule
    beta: Schedule
    theta: Schedule

    def __init__(self, alpha: ScheduleLike, beta: ScheduleLike, theta: ScheduleLike) -> None:
        # The class is frozen, so the schedules are put in place past its own __setattr__.
        object.__setattr__(self, "alpha", read_schedule("alpha", alpha))
        object.__setattr__(self, "beta", read_schedule("beta", beta))
        object.__setattr__(self, "theta", read_schedule("theta", theta))
        check_alpha(self.alpha)
        check_beta(self.beta)
        check_theta(self.theta)

    @classmethod
    def from_weights(
        cls, alpha: ScheduleLike, beta: ScheduleLike, weights: ScheduleLike, initial: float = 1.0
    ) -> Method:
        r"""Weighted AdaEMA (Algorithm 2): theta_t = W_{t-1} / W_t with W_t = W_{t-1} + w_t.

        Args:
            alpha: the base learning rate.
            beta: the momentum parameter.
            weights: w_t > 0.
            initial: W_0; the paper has 1.

        Returns:
            The method with that theta.
        """
        weights = read_schedule("weights", weights)
        try:
            theta = theta_from_weights(weights, initial)
        except ScheduleError as error:
            raise MethodError(f"weights: {error}") from error
        return cls(alpha, beta, theta)

    def at(self, t: int) -> tuple[float, float, float]:
        """(alpha_t, beta_t, theta_t) at one t = 1, 2, 3, ...; cheap enough for every step of an optimizer."""
        return self.alpha(t), self.beta(t), self.theta(t)

    def __repr__(self) -> str:
        return f"Method(alpha_t = {self.alpha}, beta_t = {self.beta}, theta_t = {self.theta})"
