"""Attributes that are worked out at their first reading."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class _Lazy(Generic[T]):
    """`functools.cached_property` without its lock, which in Python 3.11 costs more than what most of these work out.

    Two threads may work out the same value; both get an equal one.
    """

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make = make
        self._name = make.__name__
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, instance: None, owner: type[Any]) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type[Any]) -> T: ...
    def __get__(self, instance: object | None, owner: type[Any]) -> Self | T:
        if instance is None:
            return self
        value = self._make(instance)
        # The instance's own attribute stands before this descriptor from now on, in frozen dataclasses too.
        object.__setattr__(instance, self._name, value)
        return value

    if TYPE_CHECKING:

        def __set__(self, instance: object, value: T) -> None:
            """Known beforehand: nothing is worked out."""


def lazy(make: Callable[[Any], T]) -> _Lazy[T]:
    """A method as an attribute that is worked out once; an assignment says it beforehand."""
    return _Lazy(make)
