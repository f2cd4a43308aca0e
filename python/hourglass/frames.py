"""Records as columns, without a copy and without another package.

A `Frame` has columns of equal length. A column of numbers is a read-only `memoryview` of 64-bit values,
which `numpy.asarray`, `array.array` and every other user of the buffer protocol take as it is; a column
of other values is a list. Times are whole nanoseconds.

A column of codes has `labels`: code 0 is the first of them. -1 in a column that is named in `unknown` means
that the value is not known; rows and data frames have `None`, `<NA>` or null there.

    >>> import hourglass
    >>> run = hourglass.open_run("monday")  # doctest: +SKIP
    >>> sum(run.gaps["length_ns"])  # doctest: +SKIP
    >>> run.gaps.to_pandas().groupby("cause").length_ns.sum()  # doctest: +SKIP
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Iterable, Iterator, Mapping, Optional, Sequence, Union

from .errors import InvalidError

if TYPE_CHECKING:
    import numpy
    import pandas
    import polars

__all__ = ["Column", "Frame"]

Column = Union["memoryview[int]", "memoryview[float]", Sequence[Any]]
"""The values of a column: a `memoryview` of numbers, or a list."""

UNKNOWN = -1
"""Stands in a column of numbers for a value that is not known."""

_PIP = {
    "numpy": "pip install numpy",
    "pandas": "pip install pandas numpy",
    "polars": "pip install polars",
    "matplotlib": "pip install matplotlib numpy",
}


def needed(module: str, what: str) -> Any:
    """The module; if it is not there, an `ImportError` with the line that brings it."""
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ImportError as error:
        line = _PIP.get(package, f"pip install {package}")
        raise ImportError(f"{what} needs {package}: {line}", name=package) from error


class Frame:
    """A table by columns.

    `len(frame)` counts its rows, `frame["start_ns"]` is a column, `for row in frame` gives dictionaries,
    in which codes are words.
    """

    __slots__ = ("_columns", "_labels", "_length", "_unknown")

    def __init__(
        self,
        columns: Mapping[str, Column],
        labels: Optional[Mapping[str, Sequence[str]]] = None,
        unknown: Iterable[str] = (),
    ) -> None:
        self._columns: dict[str, Column] = dict(columns)
        lengths = {len(column) for column in self._columns.values()}
        if len(lengths) > 1:
            raise InvalidError(f"columns of different lengths: {sorted(lengths)}")
        self._length = lengths.pop() if lengths else 0
        self._labels = {name: tuple(words) for name, words in (labels or {}).items()}
        self._unknown = frozenset(unknown)

    @classmethod
    def _of_native(
        cls,
        native: Mapping[str, tuple[str, bytes]],
        labels: Optional[Mapping[str, Sequence[str]]] = None,
        unknown: Iterable[str] = (),
    ) -> Frame:
        """From the extension module: the format and the bytes of each column."""
        columns = {name: memoryview(data).cast(code) for name, (code, data) in native.items()}  # type: ignore[call-overload]
        return cls(columns, labels, unknown)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(self._columns)

    @property
    def labels(self) -> dict[str, tuple[str, ...]]:
        """The words of the columns that hold codes."""
        return dict(self._labels)

    @property
    def unknown(self) -> frozenset[str]:
        """The columns in which -1 means that the value is not known."""
        return self._unknown

    def __len__(self) -> int:
        return self._length

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __getitem__(self, name: str) -> Column:
        """The values of a column.

        Raises `KeyError` with the names that there are.
        """
        try:
            return self._columns[name]
        except KeyError:
            raise KeyError(f"no column {name!r}; there are {', '.join(self._columns)}") from None

    def values(self, name: str) -> list[Any]:
        """The values of a column as rows have them: words for codes, `None` for what is not known."""
        column = self[name]
        if isinstance(column, memoryview):
            column = column.tolist()
        words = self._labels.get(name)
        if words is not None:
            return [None if code == UNKNOWN else words[int(code)] for code in column]
        if name in self._unknown:
            return [None if value == UNKNOWN else value for value in column]
        return list(column)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        names = self.columns
        for row in zip(*(self.values(name) for name in names)):
            yield dict(zip(names, row))

    def __repr__(self) -> str:
        return f"<Frame of {self._length} rows: {', '.join(self._columns)}>"

    def to_numpy(self) -> dict[str, numpy.ndarray[Any, Any]]:
        """Each column as a read-only array over the same memory; codes and -1 as they are.

        Raises `ImportError` with the line that installs numpy, where it is not there.
        """
        numpy = needed("numpy", "to_numpy()")
        found = {}
        for name, column in self._columns.items():
            if isinstance(column, memoryview):
                found[name] = numpy.asarray(column)
            else:
                found[name] = numpy.asarray(column, dtype=object)
        return found

    def to_pandas(self) -> pandas.DataFrame:
        """A `pandas.DataFrame`: codes as categories, what is not known as `<NA>`.

        Raises `ImportError` with the line that installs pandas, where it is not there.
        """
        pandas = needed("pandas", "to_pandas()")
        series = {}
        for name, values in self.to_numpy().items():
            if name in self._labels:
                series[name] = pandas.Categorical.from_codes(values, categories=self._labels[name])
            elif name in self._unknown:
                series[name] = pandas.array(values, dtype="Int64")
                series[name][values == UNKNOWN] = pandas.NA
            elif isinstance(self._columns[name], memoryview):
                series[name] = values
            else:
                series[name] = pandas.array(list(values))
        return pandas.DataFrame(series)  # type: ignore[no-any-return, unused-ignore]

    def to_polars(self) -> polars.DataFrame:
        """A `polars.DataFrame`: codes as `Enum`, what is not known as null.

        Raises `ImportError` with the line that installs polars, where it is not there.
        """
        polars = needed("polars", "to_polars()")
        kinds = {"q": polars.Int64, "Q": polars.UInt64, "d": polars.Float64}
        series = []
        for name, column in self._columns.items():
            if name in self._labels:
                kind = polars.Enum(list(self._labels[name]))
                series.append(polars.Series(name, self.values(name), dtype=kind))
            elif isinstance(column, memoryview):
                values = self.values(name) if name in self._unknown else column.tolist()
                series.append(polars.Series(name, values, dtype=kinds[column.format]))
            else:
                series.append(polars.Series(name, list(column)))
        return polars.DataFrame(series)  # type: ignore[no-any-return, unused-ignore]
