"""The checks of arguments. Each error names the argument, the given value and the allowed values."""

from __future__ import annotations

import asyncio
import functools
import inspect
import sys
from collections.abc import Iterable
from typing import Any

# Both know the mark of compiled coroutine functions. asyncio's function is deprecated since 3.14.
_is_coroutine_function = inspect.iscoroutinefunction if sys.version_info >= (3, 12) else asyncio.iscoroutinefunction


def check_handler(argument: str, given: object) -> None:
    """Raises TypeError unless the argument is an async function, a decorated or partial one, an object with an async
    `__call__`, or a lambda."""
    if not callable(given):
        raise TypeError(f"{argument} is {given!r}: give an async function of a Step")
    if not _is_async(given):
        name = getattr(given, "__qualname__", repr(given))
        raise TypeError(f"{argument} is {name}, which is not async: define it with `async def`")


def _is_async(given: Any) -> bool:
    # A lambda cannot be declared async, and may return a coroutine.
    is_lambda = getattr(given, "__name__", "") == "<lambda>"
    if is_lambda or _is_coroutine_function(given) or _is_coroutine_function(type(given).__call__):
        return True
    inner = given.func if isinstance(given, functools.partial) else getattr(given, "__wrapped__", None)
    return inner is not None and _is_async(inner)


def texts(argument: str, given: Iterable[str]) -> list[str]:
    """The texts as a list. A single text is refused: its letters would be the texts."""
    listed = [given] if isinstance(given, str) else list(given or ())
    if isinstance(given, str) or not all(isinstance(text, str) for text in listed):
        raise TypeError(f"{argument} is {given!r}: give a list of texts, such as {[str(text) for text in listed]}")
    return listed
