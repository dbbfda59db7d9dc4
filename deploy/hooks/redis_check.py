"""What would keep the hooks of Redis from doing their work, found while nothing is going on. It changes nothing."""

from __future__ import annotations

from allclear_hook import Done, Told, checked


def check(told: Told) -> Done:
    return checked([])
