"""Constants of problems, written as tests write them: positions for the four that every bound asks for."""

from dataclasses import asdict

from generic_adam.setting import Setting
from generic_adam.theorems.bounds import Bound, bound_algorithm
from generic_adam.theorems.constants import Constants


def known(smoothness, gradient_bound, dimension, gap, **facts) -> Setting:
    four = {"smoothness": smoothness, "gradient_bound": gradient_bound, "dimension": dimension, "gap": gap}
    return Setting(**four, **facts)


def problem_of(smoothness, gradient_bound, dimension, gap, epsilon=1e-8, **facts) -> Constants:
    return Constants.of(known(smoothness, gradient_bound, dimension, gap, **facts), epsilon)


def bound_of(subject, problem, steps, **options) -> Bound:
    """`bound_algorithm`, for a problem that other functions take as `Constants`."""
    facts = {name: value for name, value in asdict(problem).items() if name != "epsilon"}
    return bound_algorithm(subject, Setting(**facts), steps, **options)
