"""The extension module. Programs use the modules above it."""

from datetime import timedelta
from typing import Union

SpanLike = Union[int, str, timedelta]

__version__: str

# spans
def span_ns(time: SpanLike) -> int: ...
