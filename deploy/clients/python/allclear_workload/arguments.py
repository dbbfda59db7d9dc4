"""The checks of arguments. Each error names the argument, the given value and the allowed values."""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import sys
from collections.abc import Iterable
from enum import IntEnum
from typing import Any

from .messages import millis

# In seconds. Far above the replica's limits, and within the range of a message.
_LONGEST = 10**9

# Both know the mark of compiled coroutine functions. asyncio's function is deprecated since 3.14.
_is_coroutine_function = inspect.iscoroutinefunction if sys.version_info >= (3, 12) else asyncio.iscoroutinefunction


def check_handler(argument: str, given: object) -> None:
    """Raises TypeError unless the argument is an async function, a decorated or partial one, an object with an async
    `__call__`, or a lambda."""
    if not callable(given):
        raise TypeError(f"{argument} is {given!r}: give an async function of a Step")
    if not (is_async(given) or _is_lambda(given)):
        name = getattr(given, "__qualname__", repr(given))
        raise TypeError(f"{argument} is {name}, which is not async: define it with `async def`")


def is_async(given: Any) -> bool:
    """Whether a call of the function certainly returns a coroutine."""
    if _is_coroutine_function(given) or _is_coroutine_function(type(given).__call__):
        return True
    inner = _inner(given)
    return inner is not None and is_async(inner)


def _inner(given: Any) -> Any:
    """The function inside a partial or decorated function."""
    return given.func if isinstance(given, functools.partial) else getattr(given, "__wrapped__", None)


def _is_lambda(given: Any) -> bool:
    """Whether the function is a lambda: it cannot be declared async, and may return a coroutine."""
    inner = _inner(given)
    return getattr(given, "__name__", "") == "<lambda>" or (inner is not None and _is_lambda(inner))


def check_member(argument: str, given: object, kind: type[IntEnum]) -> None:
    """Raises TypeError or ValueError unless the argument is a member of the enumeration, or the number of a member."""
    if given not in list(kind):
        error = ValueError if isinstance(given, int) else TypeError
        allowed = ", ".join(f"{kind.__name__}.{member.name}" for member in kind if member)
        raise error(f"{argument} is {given!r}: give one of {allowed}")


def duration(argument: str, given: float | None, least: float = 0) -> int | None:
    """The milliseconds of a duration in seconds. The replica knows the upper limits."""
    if given is None:
        return None
    if not isinstance(given, (int, float)):
        raise TypeError(f"{argument} is {given!r}: give a number of seconds, such as 60")
    if not least <= given <= _LONGEST:
        raise ValueError(f"{argument} is {given!r}: give a number of seconds, at least {least} and at most {_LONGEST}")
    return millis(given)


def number(argument: str, given: int | None, least: int, most: int) -> int | None:
    """A whole number within bounds; None stays None."""
    if given is None:
        return None
    is_number = isinstance(given, int) and not isinstance(given, bool)
    if not is_number or not least <= given <= most:
        error = ValueError if is_number else TypeError
        raise error(f"{argument} is {given!r}: give a whole number from {least} to {most}")
    return given


def flag(argument: str, given: bool) -> bool:
    if not isinstance(given, bool):
        raise TypeError(f"{argument} is {given!r}: give True or False")
    return given


def text(argument: str, given: str) -> str:
    if not isinstance(given, str):
        raise TypeError(f"{argument} is {given!r}: give a text")
    return given


def check_path(argument: str, given: object) -> None:
    """Raises TypeError unless the argument is the path of a file."""
    if not isinstance(given, (str, os.PathLike)):
        raise TypeError(f"{argument} is {given!r}: give the path of a file")


def instances(argument: str, given: Iterable[Any], kind: type[Any], such_as: str) -> tuple[Any, ...]:
    """The values as a tuple."""
    if not isinstance(given, Iterable):
        raise TypeError(f"{argument} is {given!r}: give a list of {kind.__name__}, such as [{such_as}]")
    listed = tuple(given)
    for value in listed:
        if not isinstance(value, kind):
            name = getattr(value, "__qualname__", repr(value))
            raise TypeError(f"{argument} has {name}: give a {kind.__name__}, such as {such_as}")
    return listed


def texts(argument: str, given: Iterable[str]) -> list[str]:
    """The texts as a list. A single text is refused: its letters would be the texts."""
    listed = [given] if isinstance(given, str) else list(given or ())
    if isinstance(given, str) or not all(isinstance(text, str) for text in listed):
        raise TypeError(f"{argument} is {given!r}: give a list of texts, such as {[str(text) for text in listed]}")
    return listed
