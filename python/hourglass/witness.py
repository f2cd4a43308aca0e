"""What the scheduler took from a span of a program: was it the code, or did the machine take the thread away?

    >>> from hourglass import witness
    >>> with witness.Span() as span:
    ...     total = sum(range(1000))
    >>> if span.loss is not None:
    ...     print(span.loss.off_cpu_ns, span.loss.cause)  # doctest: +SKIP

`span.loss` is None if the thread kept its CPU. Otherwise `off_cpu_ns` has the minimum and the maximum time for which it was off the
CPU. `cause` is a name of the list in the guide ("context_switch_involuntary", "quota", "stopped", ...), and `confidence`
its confidence. A wait of the program itself (a file, a lock, another Python thread that has the interpreter lock) is
"context_switch_voluntary". Of a span that only computes (`Span(busy=True)`) such a wait is a stop.

For functions there is a decorator, for coroutines one that excludes the time between their steps:

    >>> losses = []
    >>> @witness.witnessed(losses.append)
    ... def callback():
    ...     return 42
    >>> callback()
    42

Neither root nor a daemon is needed. A span may be nested in another one or overlap it. It ends in the thread in which it
began, or is paused there and resumed in another one; any other thread raises `hourglass.errors.WrongThreadError`, and in a
forked child `ForkedError`.
"""

from __future__ import annotations

import functools as _functools
import inspect as _inspect
import sys as _sys
from typing import TYPE_CHECKING, Any, Awaitable, Callable, Coroutine, Generator, Literal, Optional, TypeVar, Union, cast

from ._hourglass import Loss, SiteSpan, why_witness_asks
from ._hourglass import Recording as _Recording
from ._hourglass import Span as _Span
from .errors import ClosedError

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Loss", "SiteSpan", "Span", "SpanRecording", "attributes", "follow", "why_witness_asks", "witnessed"]

_F = TypeVar("_F", bound=Callable[..., Any])
_T = TypeVar("_T")


class Span(_Span):
    """A span of a program: `with Span() as span:`, and `span.loss` afterwards.

    Without a with statement: `resume()` begins it, `pause()` and `resume()` exclude the time between them and may be
    called in two threads, `end()` ends it and returns its loss. `busy` promises that it never waits.
    """

    _loss: Optional[Loss] = None
    _over = False

    def __enter__(self) -> Self:
        self.resume()
        return self

    def __exit__(self, *_raised: object) -> Literal[False]:
        self._loss = self.end()
        self._over = True
        return False

    @property
    def loss(self) -> Optional[Loss]:
        """What was taken from it; None if nothing was.

        Raises `hourglass.errors.ClosedError` before the end of its with statement.
        """
        if not self._over:
            raise ClosedError("the span is not over: ask after its with statement")
        return self._loss


class SpanRecording(_Recording):
    """Records spans by call site into a run folder, which `hourglass show`, `report`, `diff` and `export` read.

        with witness.SpanRecording("monday") as recording:
            with recording.span("request") as span:
                handle(request)

    `folder` must not exist. There is room for `sites` call sites (spans of others are counted together), and for `spans`
    spans of each thread one by one (further ones are in the numbers of their sites only). Each thread takes some 10 kB a
    site and 48 bytes a span. `worst()` has the worst spans so far with their evidence, a line each; `dump_to(file,
    signal)` writes them to the end of a file whenever that signal comes, and when a span loses `dump_from` or more.
    With `switch_times` the kernel records when threads are switched, if it lets them: bounds are then 60 us apart for each
    switch, which takes about a microsecond more. Spans are ended in the thread in which they began.
    """

    def span(self, name: str) -> SiteSpan:
        """A span of the call site `name`, for a with statement; its `loss` is there afterwards."""
        frame = _sys._getframe(1)  # noqa: SLF001
        return self.span_at(name, f"{frame.f_code.co_filename}:{frame.f_lineno}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> Literal[False]:
        self.finish()
        return False


def attributes(loss: Loss) -> dict[str, Union[int, float, str]]:
    """Names and values for a span of OpenTelemetry: `span.set_attributes(witness.attributes(loss))`.

    `hourglass.off_cpu_ns` and `hourglass.off_cpu_least_ns` (for how long the thread was off the CPU, at most and at least),
    `hourglass.waited_ns`, `hourglass.length_ns`, `hourglass.switches.voluntary`, `hourglass.switches.involuntary`,
    `hourglass.cause`, and `hourglass.confidence` from 0 to 1.
    """
    least, most = loss.off_cpu_ns
    return {
        "hourglass.off_cpu_ns": most,
        "hourglass.off_cpu_least_ns": least,
        "hourglass.waited_ns": loss.waited_ns,
        "hourglass.length_ns": loss.length_ns,
        "hourglass.switches.voluntary": loss.voluntary,
        "hourglass.switches.involuntary": loss.involuntary,
        "hourglass.cause": loss.cause,
        "hourglass.confidence": loss.confidence,
    }


def _steps(span: _Span, inner: Any) -> Generator[Any, Any, Any]:
    """The steps of an iterator, each within the span; between two of them the span is paused."""
    given: Any = None
    raised: Optional[BaseException] = None
    while True:
        span.resume()
        try:
            if raised is not None:
                if not hasattr(inner, "throw"):  # A plain iterator takes no exception.
                    raise raised
                asked = inner.throw(raised)
            elif given is None:
                asked = next(inner)
            else:
                asked = inner.send(given)
        except StopIteration as done:
            return done.value
        finally:
            span.pause()
        raised = None
        given = None
        try:
            given = yield asked
        except GeneratorExit:
            if hasattr(inner, "close"):
                inner.close()
            raise
        except BaseException as error:  # Cancellation, mostly: the coroutine's own affair.
            raised = error


class _Step(Awaitable[_T]):
    """An awaitable whose steps are within a span that goes on afterwards."""

    __slots__ = ("_inner", "_span")

    def __init__(self, span: _Span, inner: Awaitable[_T]) -> None:
        self._span = span
        self._inner = inner

    def __await__(self) -> Generator[Any, Any, _T]:
        return _steps(self._span, self._inner.__await__())


class follow(Coroutine[Any, Any, _T]):  # noqa: N801
    """Awaits a coroutine and witnesses its steps: `steps = witness.follow(handle()); await steps; steps.loss`.

    The time between two steps, in which it waits and other tasks run, is not its own. It is a coroutine itself:
    `asyncio.create_task(steps)`.
    """

    __slots__ = ("_coroutine", "_loss", "_running", "_span")

    def __init__(self, coroutine: Awaitable[_T]) -> None:
        """Of a coroutine, or whatever may be awaited; nothing runs before it is."""
        self._coroutine = coroutine
        self._span = _Span()
        self._loss: Optional[Loss] = None
        self._running: Optional[Generator[Any, Any, _T]] = None

    @property
    def loss(self) -> Optional[Loss]:
        """What was taken from its steps; None if nothing was, or while it is not over."""
        return self._loss

    def __await__(self) -> Generator[Any, Any, _T]:
        try:
            return cast(_T, (yield from _steps(self._span, self._coroutine.__await__())))
        finally:
            self._loss = self._span.end()

    def _steps(self) -> Generator[Any, Any, _T]:
        if self._running is None:
            self._running = self.__await__()
        return self._running

    def send(self, value: Any) -> Any:
        """The next step, as of any coroutine."""
        return self._steps().send(value)

    def throw(self, *raised: Any) -> Any:
        """The next step, which begins with an exception."""
        return self._steps().throw(*raised)

    def close(self) -> None:
        """Ends it where it is."""
        if self._running is not None:
            self._running.close()
        elif hasattr(self._coroutine, "close"):
            self._coroutine.close()


def witnessed(report: Callable[[Loss], object]) -> Callable[[_F], _F]:
    """A decorator: `report` is called with what was taken from a call, after each call that was disturbed.

    For functions, coroutine functions, and generators of both kinds, whose steps are the call: what happens between two
    of them is the caller's. It is not called where nothing happened, and its exceptions are the caller's.
    """

    def over(span: _Span) -> None:
        loss = span.end()
        if loss is not None:
            report(loss)

    def decorate(function: _F) -> _F:
        if _inspect.iscoroutinefunction(function):

            @_functools.wraps(function)
            async def steps(*args: Any, **kwargs: Any) -> Any:
                followed: follow[Any] = follow(function(*args, **kwargs))
                try:
                    return await followed
                finally:
                    if followed.loss is not None:
                        report(followed.loss)

            return cast(_F, steps)

        if _inspect.isgeneratorfunction(function):

            @_functools.wraps(function)
            def items(*args: Any, **kwargs: Any) -> Any:
                span = _Span()
                try:
                    return (yield from _steps(span, function(*args, **kwargs)))
                finally:
                    over(span)

            return cast(_F, items)

        if _inspect.isasyncgenfunction(function):

            @_functools.wraps(function)
            async def async_items(*args: Any, **kwargs: Any) -> Any:
                span = _Span()
                inner = function(*args, **kwargs)
                step = inner.__anext__()
                try:
                    while True:
                        try:
                            item = await _Step(span, step)
                        except StopAsyncIteration:
                            return
                        try:
                            given = yield item
                        except GeneratorExit:
                            await _Step(span, inner.aclose())
                            raise
                        except BaseException as error:
                            step = inner.athrow(error)
                        else:
                            step = inner.asend(given)
                finally:
                    over(span)

            return cast(_F, async_items)

        @_functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            span = _Span()
            span.resume()
            try:
                return function(*args, **kwargs)
            finally:
                over(span)

        return cast(_F, call)

    return decorate
