"""What several commands do with their options."""

from __future__ import annotations


def listed(names: str) -> list[str]:
    """Names with commas between them."""
    return [name.strip() for name in names.split(",") if name.strip()]
