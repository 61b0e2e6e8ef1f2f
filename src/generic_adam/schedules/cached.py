"""An attribute that is computed once and never locks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")


class cached_attribute(Generic[Value]):  # noqa: N801  (it stands where `property` stands)
    """A property whose first value is kept in the instance.

    The standard library's cached_property (Python 3.11) holds one lock for each class and name while it
    computes: of two nodes that ask for each other's attributes in two threads, each would wait for the other
    for ever. Here two threads may compute the same value, which costs time and nothing else: the first one
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
