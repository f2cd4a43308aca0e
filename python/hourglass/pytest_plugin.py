"""For pytest-benchmark: which rounds the scheduler disturbed, and statistics without them.

    pytest --benchmark-witness

Rounds in which the scheduler took the thread away are marked, and a table at the end shows what the others say:

    name             rounds  disturbed  median ns  clean  max ns  clean  mostly
    test_parses[10]    5120         14        812    812  190300   1020  context_switch_involuntary

These numbers are in the benchmark's `extra_info["hourglass"]`, which pytest-benchmark writes into its JSON: `rounds`, `disturbed` (the
numbers of those rounds, from 0), `off_cpu_ns` (all of them together, at least and at most), `causes` (how many rounds each), and
`clean`, with the keys of pytest-benchmark's `stats`, in seconds; None if no round is clean.

The round's span includes what pytest-benchmark does outside of its timing, so a round may be marked that was disturbed just outside. Its
times are as without the option. pytest finds this plugin by itself; without the option it does nothing.
"""

from __future__ import annotations

import statistics as _statistics
from typing import Any, Callable, Generator, Optional

import pytest

_OPTION = "--benchmark-witness"
_KEY = "hourglass"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("benchmark")
    text = "Mark rounds in which the scheduler took the thread away, and show statistics without them (Hourglass)."
    group.addoption(_OPTION, action="store_true", default=False, help=text)


def pytest_configure(config: pytest.Config) -> None:
    if not config.getoption(_OPTION):
        return
    if not config.pluginmanager.hasplugin("benchmark"):
        raise pytest.UsageError(f"{_OPTION} needs pytest-benchmark: pip install pytest-benchmark")
    config.pluginmanager.register(_Witnessed(), "hourglass-benchmark-witness")


class _Rounds:
    """The rounds of one benchmark, and those before them, in which it is calibrated."""

    def __init__(self, make_runner: Callable[..., Any]) -> None:
        from . import witness

        self._make_runner = make_runner
        self._span = witness.Span
        # Seconds of a round, and its loss.
        self._runs: list[tuple[float, Any]] = []

    def make_runner(self, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        """In the place of the fixture's: its runner within a span."""
        runner = self._make_runner(*args, **kwargs)

        def witnessed(*args: Any, **kwargs: Any) -> Any:
            with self._span() as span:
                answer = runner(*args, **kwargs)
            seconds = answer[0] if isinstance(answer, tuple) else answer
            self._runs.append((seconds, span.loss))
            return answer

        return witnessed

    def of(self, measured: Any) -> Optional[dict[str, Any]]:
        """What is known of the rounds that pytest-benchmark kept; None if these are not the last that were run."""
        data = measured.stats.data
        runs = self._runs[len(self._runs) - len(data) :]
        if not data or [seconds / measured.iterations for seconds, _ in runs] != data:
            return None
        losses = [(number, loss) for number, (_, loss) in enumerate(runs) if loss is not None]
        causes: dict[str, int] = {}
        for _, loss in losses:
            causes[loss.cause] = causes.get(loss.cause, 0) + 1
        clean = type(measured.stats)()
        for seconds, (_, loss) in zip(data, runs):
            if loss is None:
                clean.update(seconds)
        return {
            "rounds": len(data),
            "disturbed": [number for number, _ in losses],
            "off_cpu_ns": [sum(loss.off_cpu_ns[end] for _, loss in losses) for end in (0, 1)],
            "causes": causes,
            "clean": clean.as_dict() if clean.data else None,
        }


class _Witnessed:
    """The hooks, where the option was given."""

    def __init__(self) -> None:
        self._rows: list[list[str]] = []

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, None]:
        fixtures = getattr(item, "funcargs", {}).values()
        benchmark = next((one for one in fixtures if hasattr(one, "extra_info") and hasattr(one, "pedantic")), None)
        if benchmark is None:
            yield
            return
        if not hasattr(benchmark, "_make_runner"):
            raise pytest.UsageError(f"{_OPTION} does not know this release of pytest-benchmark: take one from 4.0 to 5.3")
        rounds = _Rounds(benchmark._make_runner)
        benchmark._make_runner = rounds.make_runner
        yield
        measured = benchmark.stats
        if measured is None or benchmark.has_error:
            return
        known = rounds.of(measured)
        if known is not None:
            benchmark.extra_info[_KEY] = known
            self._rows.append(_row(benchmark.name, measured.stats.data, known))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._rows:
            return
        head = ["name", "rounds", "disturbed", "median ns", "clean", "max ns", "clean", "mostly"]
        rows = [head, *self._rows]
        widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
        terminalreporter.section("rounds that the scheduler disturbed")
        for name, *figures, cause in rows:
            shown = [name.ljust(widths[0]), *(text.rjust(width) for text, width in zip(figures, widths[1:]))]
            terminalreporter.write_line("  ".join([*shown, cause]).rstrip())


def _row(name: str, data: list[float], known: dict[str, Any]) -> list[str]:
    clean = known["clean"]

    def both(of: Callable[[list[float]], float], key: str) -> list[str]:
        return [f"{of(data) * 1e9:.0f}", "-" if clean is None else f"{clean[key] * 1e9:.0f}"]

    causes = known["causes"]
    mostly = max(causes, key=causes.__getitem__) if causes else ""
    counts = [str(known["rounds"]), str(len(known["disturbed"]))]
    return [name, *counts, *both(_statistics.median, "median"), *both(max, "max"), mostly]
