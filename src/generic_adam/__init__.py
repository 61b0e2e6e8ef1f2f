"""Does my Adam converge, how fast, and what is the smallest change that makes it?

Names are imported when they are first used: ``import generic_adam`` costs nothing, and needs NumPy only.

Examples:
    >>> import generic_adam as ga
    >>> print(ga.certify(ga.methods.adam(lr=1e-3)).long_run)
    no guarantee
    >>> print(ga.certify(ga.methods.certified_adam(lr=1e-3)).long_run)
    guaranteed
"""

TYPE_CHECKING = False  # type checkers know the name; `typing` would be the dearest part of this import
if TYPE_CHECKING:
    from generic_adam import adapters, methods, reference, schedules, theorems
    from generic_adam.answers.comparison import compare
    from generic_adam.certification import advise, best_rate, bound, certify, steps_needed
    from generic_adam.errors import GenericAdamError, MethodError
    from generic_adam.methods.algorithm import Algorithm
    from generic_adam.methods.method import Method
    from generic_adam.schedules import Growth, Schedule, ScheduleError, parse
    from generic_adam.setting import Assumptions, Problem, Setting
    from generic_adam.theorems.certificate import Certificate
    from generic_adam.verify import verify

__version__ = "0.2.0"

_HOME_OF_NAME = {
    "Algorithm": "methods.algorithm",
    "Assumptions": "setting",
    "Certificate": "theorems.certificate",
    "GenericAdamError": "errors",
    "Growth": "schedules",
    "Method": "methods.method",
    "MethodError": "errors",
    "Problem": "setting",
    "Schedule": "schedules",
    "ScheduleError": "schedules",
    "Setting": "setting",
    "advise": "certification",
    "best_rate": "certification",
    "bound": "certification",
    "certify": "certification",
    "compare": "answers.comparison",
    "parse": "schedules",
    "steps_needed": "certification",
}
_SUB_PACKAGES = ("adapters", "methods", "optax", "reference", "schedules", "theorems", "torch", "verify")

__all__ = [
    "Algorithm",
    "Assumptions",
    "Certificate",
    "GenericAdamError",
    "Growth",
    "Method",
    "MethodError",
    "Problem",
    "Schedule",
    "ScheduleError",
    "Setting",
    "adapters",
    "advise",
    "best_rate",
    "bound",
    "certify",
    "compare",
    "methods",
    "parse",
    "reference",
    "schedules",
    "steps_needed",
    "theorems",
    "verify",
]


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in _HOME_OF_NAME:
        value = getattr(import_module(f"{__name__}.{_HOME_OF_NAME[name]}"), name)
    elif name in _SUB_PACKAGES:
        value = import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value  # the next use does not come here
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_SUB_PACKAGES, *globals()})
