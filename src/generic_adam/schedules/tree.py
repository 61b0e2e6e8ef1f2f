"""The tree: a schedule u_1, u_2, u_3, ... is an expression in t, and its nodes are nothing but data.

What is done with nodes is open, and lives elsewhere: each operation is one module with one `Table` over the
types of node. The tables that a schedule's own methods and operators use are declared here and filled there:

    normal     normal form (what +, -, * and the builders make) and complements 1 - u
    evaluate   values, one by one and in blocks
    rounding   blocks of values with error bounds
    text       text, both ways
    expansion  growth as t tends to infinity

To add a node: declare it here with its facts (`pointwise`, `smooth`, ..., which have no default), and `Table.missing`
says what is left to write.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from numbers import Rational, Real
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar, cast, final

import numpy as np
import numpy.typing as npt

from generic_adam.errors import ScheduleError, shown

if TYPE_CHECKING:
    from generic_adam.schedules.growth import Growth

Pair = tuple[Any, Any]
"""Values and bounds on their errors, arrays or single numbers."""
FloatArray = npt.NDArray[np.float64]
"""A NumPy array of float64, what blocks of values are."""
ScalarFunction = Callable[[float], float]

# Blocks of this many t stay in the first-level caches: a chain of array operations does not wait for memory.
BLOCK = 8192
# One period is evaluated whole to know the extremes.
LONGEST_PERIOD = 1 << 22
# Every operation goes down the tree with three to four calls a level, and Python allows a thousand.
DEEPEST = 200
# As many values as `values` makes at once: 8 GB.
MOST_VALUES = 10**9
# Bits of an exact number: what is longer has no text that Python would read again.
LONGEST_NUMBER = 12_000
FUNCTIONS = ("sqrt", "log", "exp", "abs", "sin", "cos", "expm1", "log1p")
"""The functions of one argument that a schedule may use."""

Rule = TypeVar("Rule", bound=Callable[..., Any])
Value = TypeVar("Value")


class cached_attribute(Generic[Value]):  # noqa: N801  (it stands where `property` stands)
    """A property whose first value is kept in the instance.

    The standard library's cached_property (Python 3.11) holds one lock for each class and name while it
    computes: of two nodes that ask for each other's attributes in two threads, each would wait for the other
    without end. Here two threads may compute the same value, which costs time and nothing else: the first one
    that is kept is the one that everybody sees.
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    def __get__(self, instance: object, owner: type | None = None) -> Value:
        if instance is None:
            return self  # type: ignore[return-value]  (seen by documentation tools only)
        # Without __set__, an entry of the instance's dictionary is found before this is called again.
        return instance.__dict__.setdefault(self._name, self._compute(instance))


def remembered(find: Rule) -> Rule:
    """Keep the answers of a function of a node (and of plain values) with the node."""

    @functools.wraps(find)
    def answer(node: Schedule, *others: Any) -> Any:
        known, key = node.known_facts, (find, *others)
        return known[key] if key in known else known.setdefault(key, find(node, *others))

    return cast("Rule", answer)


class Table(dict[type["Schedule"], Rule]):
    """One operation: type of node -> its rule.

    Args:
        name: what the operation is, for the message when a node has no rule.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def __missing__(self, node: type[Schedule]) -> Rule:
        raise ScheduleError(f"{self.name}: no rule for {node.__name__}")

    @property
    def missing(self) -> set[type[Schedule]]:
        """The types of node that have no rule yet."""
        return set(NODES) - set(self)


normal_form: Table[Callable[..., Schedule]] = Table("the normal form")
"""Type of node -> the schedule in normal form, from the node's fields."""
complement_of: Table[Callable[[Any], Schedule]] = Table("the complement 1 - u")
"""Node -> 1 - u, rearranged so that no digits cancel where the form allows it."""
compiled: Table[Callable[[Any], ScalarFunction]] = Table("single values")
"""Node -> a plain function of t, composed once, so that one evaluation costs a few nested calls."""
block_of: Table[Callable[[Any, FloatArray], FloatArray | np.float64 | float]] = Table("blocks of values")
"""Node, array of t -> the values there; a constant may come back as one number."""
filtered_of: Table[Callable[[Any, FloatArray], Pair]] = Table("values with error bounds")
"""Node, array of whole t -> values and bounds on their errors (infinite where nothing is known)."""
order_of: Table[Callable[[Any], Any]] = Table("growth")
"""Node -> its growth, possibly only an upper bound, or None."""
text_of: Table[Callable[[Any], tuple[str, int]]] = Table("text")
"""Node -> its text and how tightly that binds: 0 join, 1 sum, 2 product, 3 sign, 4 power, 5 atom."""


class Schedule:
    r"""A sequence u_1, u_2, u_3, ... given by an expression in t.

    Subclasses are the final, frozen nodes of the expression; equal expressions are equal schedules.

    Examples:
        >>> from generic_adam.schedules import parse
        >>> a = parse("0.5 / sqrt(t)")
        >>> a(4)
        0.25
        >>> str(a.growth)
        't^(-1/2)'
    """

    # The facts of a node, which have no default: what is new has to declare them.
    #   pointwise   u_t depends on the parts at t alone, so that constant parts make a constant
    #   continuous  it has values between whole t, where its parts have
    #   smooth      there it bends no more than its parts, and does not swing by itself
    #   shiftable   u_{t-1} is an expression again
    #   total       it is a number wherever its parts are
    #   keeps_sign  it is positive where its parts are
    pointwise: ClassVar[bool]
    continuous: ClassVar[bool]
    smooth: ClassVar[bool]
    shiftable: ClassVar[bool]
    total: ClassVar[bool]
    keeps_sign: ClassVar[bool]
    __dataclass_fields__: ClassVar[dict[str, Any]]
    # How many expressions are inside one another.
    depth: int

    def __new__(cls, *values: Any, **named: Any) -> Self:
        """Make a node over others, not too deep for recursion."""
        node = super().__new__(cls)
        inside = [value.depth for value in (*values, *named.values()) if isinstance(value, Schedule)]
        depth = node.__dict__["depth"] = 1 + max(inside, default=0)
        if depth > DEEPEST:
            raise ScheduleError(f"an expression is nested more than {DEEPEST} deep; expected a simpler one")
        return node

    def __call__(self, t: float) -> float:
        """u_t for one t >= 1."""
        if t < 1:
            raise ScheduleError(f"a schedule starts at t = 1, got t = {t}")
        try:
            return self.scalar(t)
        except (ZeroDivisionError, OverflowError) as error:
            raise ScheduleError(f"{self} cannot be evaluated at t = {t}: {error}") from error
        except ScheduleError:
            raise
        except ValueError as error:
            raise ScheduleError(f"{self} is not defined at t = {t}: {error}") from error

    def values(self, start: int, stop: int) -> FloatArray:
        """Return u_start..u_stop-1 as float64; where u_t is undefined, what floats say: nan, inf, min(1, inf)."""
        if not 1 <= start <= stop <= start + MOST_VALUES or start % 1 or stop % 1:
            said = "values(start, stop) needs 1 <= start <= stop, whole numbers at most 10^9 apart"
            raise ScheduleError(f"{said}, got start = {shown(start)}, stop = {shown(stop)}")
        start, stop = int(start), int(stop)
        result = np.empty(stop - start)
        with np.errstate(all="ignore"):
            for begin in range(start, stop, BLOCK):
                end = min(begin + BLOCK, stop)
                result[begin - start : end - start] = self.block(np.arange(begin, end, dtype=np.float64))
        return result

    def at(self, times: npt.ArrayLike) -> FloatArray:
        """u_t at the given t >= 1, in any order; real t are allowed where `accepts_real_times` is true."""
        array = np.asarray(times, dtype=np.float64)
        with np.errstate(all="ignore"):
            return np.array(np.broadcast_to(self.block(array), array.shape), dtype=np.float64)

    def block(self, times: FloatArray) -> FloatArray | np.float64 | float:
        """Return the values at an array of t as the nodes compute them; `values` and `at` are the front doors."""
        return block_of[type(self)](self, times)

    @cached_attribute
    def scalar(self) -> ScalarFunction:
        """u_t as a plain function of t, without the checks of a call."""
        return compiled[type(self)](self)

    @cached_attribute
    def growth(self) -> Growth | None:
        """Return the order of u_t as t tends to infinity, or None where it is not known."""
        growth = self.order
        if growth is None or not (growth.sign or growth.is_zero):
            return None
        return growth

    @cached_attribute
    def order(self) -> Growth | None:
        """As `growth`, but possibly only an upper bound on abs(u_t): what sums are computed from."""
        return order_of[type(self)](self)

    @cached_attribute
    def complement(self) -> Schedule:
        """Return the schedule 1 - u. It is cached, so facts proved about it are kept."""
        return complement_of[type(self)](self)

    @property
    def is_constant(self) -> bool:
        """Return whether u_t is the same number for every t, by its form."""
        return self.constant_value is not None

    @cached_attribute
    def constant_value(self) -> float | None:
        """Return the number that u_t is for every t, as near as a float is, or None."""
        parts = self.children
        if not self.pointwise or not parts or not all(part.is_constant for part in parts):
            return None
        return self(1)

    @cached_attribute
    def children(self) -> tuple[Schedule, ...]:
        """Return the sub-expressions, in the order of the text."""
        return tuple(value for value in self.field_values if isinstance(value, Schedule))

    @cached_attribute
    def joins(self) -> tuple[int, ...]:
        """Return the thresholds of all joins inside, in order."""
        here = (self.threshold,) if isinstance(self, Join) else ()
        return tuple(sorted({*here, *(cut for child in self.children for cut in child.joins)}))

    @cached_attribute
    def accepts_real_times(self) -> bool:
        """Return whether `at` is defined for real t: not with periods, running sums or callables inside."""
        return self.continuous and all(child.accepts_real_times for child in self.children)

    @cached_attribute
    def known_facts(self) -> dict[Any, Any]:
        """Facts found out about u_t so far; empty at first."""
        return {}

    @property
    def field_values(self) -> tuple[Any, ...]:
        """The data of the node."""
        # What a frozen dataclass is compared by, read without its machinery: this is asked at every rebuild.
        return tuple(getattr(self, name) for name in self.__dataclass_fields__)

    def __reduce__(self) -> tuple[Any, ...]:
        # Only the fields travel: the compiled function and the caches are made anew.
        return type(self), self.field_values

    def __str__(self) -> str:
        return text_of[type(self)](self)[0]

    def __repr__(self) -> str:
        return f"Schedule({str(self)!r})"

    def __add__(self, other: object) -> Schedule:
        return normal_form[Add](self, operand(other))

    def __radd__(self, other: object) -> Schedule:
        return operand(other) + self

    def __sub__(self, other: object) -> Schedule:
        return normal_form[Subtract](self, operand(other))

    def __rsub__(self, other: object) -> Schedule:
        return operand(other) - self

    def __mul__(self, other: object) -> Schedule:
        return normal_form[Multiply](self, operand(other))

    def __rmul__(self, other: object) -> Schedule:
        return operand(other) * self

    def __truediv__(self, other: object) -> Schedule:
        return normal_form[Divide](self, operand(other))

    def __rtruediv__(self, other: object) -> Schedule:
        return operand(other) / self

    def __pow__(self, other: object) -> Schedule:
        return normal_form[Power](self, operand(other))

    def __rpow__(self, other: object) -> Schedule:
        return operand(other) ** self

    def __neg__(self) -> Schedule:
        return normal_form[Negate](self)


@final
@dataclass(frozen=True, repr=False)
class Constant(Schedule):
    """u_t = value, an exact rational number: 0.999 is 999/1000, so 1 - 0.999 is 1/1000 to the last bit."""

    value: Fraction
    pointwise = continuous = smooth = shiftable = total = True
    keeps_sign = False

    def __post_init__(self) -> None:
        try:
            number = float(self.value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise ScheduleError("a number of this expression is too large for a float64 (above 1.8e308)")
        if max(map(int.bit_length, self.value.as_integer_ratio())) > LONGEST_NUMBER:
            raise ScheduleError("a number of this expression has more than 3,600 digits")
        self.__dict__["constant_value"] = number


@final
@dataclass(frozen=True, repr=False)
class Time(Schedule):
    """u_t = t."""

    pointwise = continuous = smooth = shiftable = total = keeps_sign = True


@dataclass(frozen=True, repr=False)
class Binary(Schedule):
    """Nodes with two operands, left and right."""

    left: Schedule
    right: Schedule
    pointwise = continuous = shiftable = True


@final
class Add(Binary):
    """u_t = left_t + right_t."""

    smooth = total = keeps_sign = True


@final
class Subtract(Binary):
    """u_t = left_t - right_t."""

    smooth = total = True
    keeps_sign = False


@final
class Multiply(Binary):
    """u_t = left_t * right_t."""

    smooth = total = keeps_sign = True


@final
class Divide(Binary):
    """u_t = left_t / right_t."""

    smooth = keeps_sign = True
    total = False


@final
class Power(Binary):
    """u_t = left_t ^ right_t (base and exponent)."""

    smooth = True
    total = keeps_sign = False


@final
class Maximum(Binary):
    """u_t = max(left_t, right_t)."""

    smooth = False
    total = keeps_sign = True


@final
class Minimum(Binary):
    """u_t = min(left_t, right_t)."""

    smooth = False
    total = keeps_sign = True


@final
@dataclass(frozen=True, repr=False)
class Negate(Schedule):
    """u_t = -operand_t."""

    operand: Schedule
    pointwise = continuous = smooth = shiftable = total = True
    keeps_sign = False


@final
@dataclass(frozen=True, repr=False)
class Function(Schedule):
    """u_t = name(argument_t), with name one of sqrt, log, exp, abs, sin, cos, expm1, log1p."""

    name: str
    argument: Schedule
    pointwise = continuous = shiftable = True
    keeps_sign = False

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        """Return whether it has no kink and does not swing."""
        return self.name not in {"abs", "sin", "cos"}

    @property
    def total(self) -> bool:  # type: ignore[override]
        """Return whether it is a number everywhere."""
        return self.name not in {"sqrt", "log", "log1p"}

    def __post_init__(self) -> None:
        if self.name not in FUNCTIONS:
            raise ScheduleError(f"unknown function {self.name!r}; expected one of {', '.join(FUNCTIONS)}")


@final
@dataclass(frozen=True, repr=False)
class Join(Schedule):
    """u_t = before_t for t < threshold, after_t from then on: a finite beginning and a tail."""

    threshold: int
    before: Schedule
    after: Schedule
    pointwise = smooth = False
    continuous = shiftable = total = keeps_sign = True


@final
@dataclass(frozen=True, repr=False)
class Periodic(Schedule):
    """u_t = body_s with s = 1 + (t - 1) mod period, so that u_1, ..., u_period come again and again.

    One period has finitely many values, so its least and its largest are known, and with them everything the
    conditions ask about the tail. A floor is a period too: floor((t - 1) / n) = (t - periodic(t, n)) / n.
    """

    body: Schedule
    period: int
    pointwise = smooth = False
    continuous = False  # at real t it would jump wherever a period ends
    shiftable = total = keeps_sign = True

    def __post_init__(self) -> None:
        if not 1 <= self.period <= LONGEST_PERIOD:
            raise ScheduleError(f"a period must be a whole number from 1 to {LONGEST_PERIOD}, got {self.period}")


@final
@dataclass(frozen=True, repr=False)
class Bounded(Schedule):
    """u_t = operand_t, of which it is known (by a proof elsewhere) that low <= u_t <= high for every t.

    Bounds of one sign settle the order of growth, whatever happens between them. A value outside the
    bounds is an error when it is met: the claim was wrong.
    """

    operand: Schedule
    low: float
    high: float
    pointwise = continuous = smooth = shiftable = total = keeps_sign = False

    def __post_init__(self) -> None:
        if not -math.inf < self.low <= self.high < math.inf:
            raise ScheduleError(f"bounds must be two numbers low <= high, got {self.low} and {self.high}")


@dataclass(frozen=True, repr=False)
class OfWeights(Schedule):
    """Nodes over weights: theta_t = W_{t-1}/W_t and its complement w_t/W_t."""

    weights: Schedule
    initial: Fraction = field(default=Fraction(1))
    smooth = keeps_sign = True
    pointwise = continuous = shiftable = total = False

    def __post_init__(self) -> None:
        if self.initial <= 0:
            raise ScheduleError(f"the initial weight sum W_0 must be positive, got {self.initial}")
        Constant(self.initial)  # which refuses what is too large


@final
class WeightedTheta(OfWeights):
    """theta_t = W_{t-1} / W_t, W_t = W_{t-1} + w_t, W_0 = initial: Generic Adam's theta from weights."""


@final
class WeightShare(OfWeights):
    """w_t / W_t = 1 - theta_t, all digits kept."""


@final
@dataclass(frozen=True, repr=False)
class BiasCorrection(Schedule):
    """u_t = 1 - prod_{i<=t} factor_i, factors in [0, 1): right for schedules, where factor_t^t is wrong."""

    factor: Schedule
    smooth = shiftable = True
    pointwise = total = keeps_sign = False

    def __post_init__(self) -> None:
        value = self.factor.constant_value
        # A number below 1 such as 1 - 1e-20 or cos(1e-9) may have 1 as its float.
        rounded = value == 1 and not (isinstance(self.factor, Constant) and self.factor.value >= 1)
        if value is not None and not 0 <= value < 1 and not rounded:
            raise ScheduleError(f"bias correction needs a factor in [0, 1), got {value}")

    @property
    def continuous(self) -> bool:  # type: ignore[override]
        """Return whether the product is a power, which is defined between whole t."""
        return self.factor.is_constant


@final
@dataclass(frozen=True, repr=False)
class Opaque(Schedule):
    """u_t = function(t). Only finite evidence can be had about it.

    A function that takes an array of t and returns the array of u_t is used as such, after a comparison with
    single calls on each block; any other is called once for each t.
    """

    function: Callable[[Any], Any]
    name: str = field(default="", compare=False)
    shiftable = True
    pointwise = continuous = smooth = total = keeps_sign = False


NODES: tuple[type[Schedule], ...] = tuple(
    node for node in list(globals().values()) if isinstance(node, type) and hasattr(node, "__final__")
)
"""Every type of node (the final classes above); what a table has to cover."""


def exact(value: Real | float) -> Fraction:
    """Return the rational number meant by a float: the shortest decimal that prints as it."""
    if type(value) is int or type(value) is Fraction:
        return Fraction(value)
    if isinstance(value, Rational):  # numpy.int64, say, whose parts python-flint would not take
        return Fraction(int(value.numerator), int(value.denominator))
    try:
        return Fraction(repr(float(value)))
    except (TypeError, ValueError, OverflowError):
        raise ScheduleError(f"expected a finite number, got {shown(value)}") from None


def operand(value: object) -> Schedule:
    """Return a schedule from a schedule (as it is), a number, or a callable of t (opaque)."""
    if isinstance(value, Schedule):
        return value
    if type(value) is int or (isinstance(value, Real) and value is not True and value is not False):
        return Constant(exact(value))
    if callable(value):
        return Opaque(value)
    shown = repr(value) if isinstance(value, bool) else type(value).__name__
    raise ScheduleError(f"expected a number, a text, a schedule or a callable of t, got {shown}")


def walk(schedule: Schedule) -> Iterator[Schedule]:
    """Return the schedule and every expression inside it, outermost first."""
    pending = [schedule]
    while pending:
        node = pending.pop()
        yield node
        pending += reversed(node.children)


def contains(schedule: Schedule, *nodes: type[Schedule]) -> bool:
    """Return whether a node of one of these types is part of the schedule."""
    return any(isinstance(node, nodes) for node in walk(schedule))


def rebuild(node: Schedule, change: Callable[[Schedule], Schedule]) -> Schedule:
    """Return the node over changed children, in normal form; the node itself where none of them changes."""
    changed = [change(child) for child in node.children]
    if all(new is old for new, old in zip(changed, node.children, strict=True)):
        return node
    parts = iter(changed)
    values = (next(parts) if isinstance(value, Schedule) else value for value in node.field_values)
    return normal_form[type(node)](*values)


def substitute(schedule: Schedule, replacements: dict[Schedule, Schedule]) -> Schedule:
    """Return the schedule with sub-expressions replaced, outermost first."""

    def change(node: Schedule) -> Schedule:
        return replacements[node] if node in replacements else rebuild(node, change)

    return change(schedule)
