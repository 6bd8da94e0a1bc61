# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of TensorFlow's or muster's as mappings of names to arrays, which are read when they are asked for.

    checkpoint = muster.checkpoint.open("run/model.ckpt-1000")
    checkpoint["dense/kernel"]          # a read-only array
    checkpoint["dense/kernel", "0,4:-"]  # its first four rows
    checkpoint.shapes["dense/kernel"]   # without reading it

In a notebook, a checkpoint is shown as a table.
"""
import html
import os
import typing

from gi.repository import Muster

Path = typing.Union[str, "os.PathLike[str]"]

_MOST_ROWS = 200  # of a table


class Variable(typing.NamedTuple):
    """What the index says of a tensor; it isn't read."""

    name: str
    dtype: str
    shape: typing.Tuple[int, ...]
    n_bytes: int


class _Shapes(typing.Mapping[str, typing.Tuple[int, ...]]):
    def __init__(self, checkpoint: "Checkpoint") -> None:
        self._checkpoint = checkpoint

    def __getitem__(self, name: str) -> typing.Tuple[int, ...]:
        return self._checkpoint.variable(name).shape

    def __iter__(self) -> typing.Iterator[str]:
        return iter(self._checkpoint)

    def __len__(self) -> int:
        return len(self._checkpoint)


class Checkpoint(typing.Mapping[str, typing.Any]):
    """A checkpoint's tensors by name, in the order of their names. Opening it reads its index only."""

    def __init__(self, prefix: Path) -> None:
        self._reader = Muster.BundleReader.open(None, os.fspath(prefix))
        self._names = self._reader.names()

    @property
    def prefix(self) -> str:
        return self._reader.prefix()

    @property
    def shapes(self) -> typing.Mapping[str, typing.Tuple[int, ...]]:
        """The shape of each tensor, without reading it."""
        return _Shapes(self)

    def variable(self, name: str) -> Variable:
        """A tensor's name, type, shape and size; KeyError if there is none of that name."""
        entry = self._reader.find(name)
        if entry is None:
            raise KeyError(name)
        return Variable(name, Muster.dtype_name(entry.dtype), tuple(entry.shape()), entry.size)

    def tensor(self, name: str, slice: typing.Optional[str] = None) -> Muster.Tensor:
        """A tensor, or a part of it, as Muster.Tensor: what a step is fed with."""
        if self._reader.find(name) is None:
            raise KeyError(name)
        return self._reader.read_slice(name, slice)

    def __getitem__(self, key: typing.Union[str, typing.Tuple[str, str]]) -> typing.Any:
        """An array, read and checked now; with a slice such as "0,4:-" (start,length for each dimension) a part of it."""
        name, slice = key if isinstance(key, tuple) else (key, None)
        return self.tensor(name, slice).numpy()

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._reader.find(name) is not None

    def __iter__(self) -> typing.Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def verify(self) -> None:
        """Reads every byte; raises Muster.DataLoss, which names the file and the tensor, if one has changed."""
        self._reader.verify(None, None, None)

    def __repr__(self) -> str:
        return "<muster.checkpoint '%s': %d tensors, %s>" % (self.prefix, len(self), Muster.format_size(self._n_bytes()))

    def _n_bytes(self) -> int:
        return sum(self.variable(name).n_bytes for name in self)

    def _repr_html_(self) -> str:
        rows = [self.variable(name) for name in self._names[:_MOST_ROWS]]
        cells = "".join("<tr>%s</tr>" % "".join("<td>%s</td>" % html.escape(text) for text in (
            row.name, row.dtype, "×".join(map(str, row.shape)) or "scalar", Muster.format_size(row.n_bytes))) for row in rows)
        more = "<p>… and %d more</p>" % (len(self) - len(rows)) if len(self) > len(rows) else ""
        return ("<p><b>%s</b>: %d tensors, %s</p><table><tr><th>name</th><th>type</th><th>shape</th><th>size</th></tr>%s</table>%s"
                % (html.escape(self.prefix), len(self), Muster.format_size(self._n_bytes()), cells, more))


def latest(directory: Path) -> typing.Optional[str]:
    """The prefix of a directory's latest checkpoint, as its state file names it; None if there is none."""
    return Muster.latest_checkpoint(None, os.fspath(directory))


def open(path: Path) -> Checkpoint:
    """A checkpoint by its prefix, such as "run/model.ckpt-1000", or the latest one of a directory."""
    path = os.fspath(path)
    is_directory = os.path.isdir(path)
    found = latest(path) if is_directory or "://" in path else None
    if is_directory and found is None:
        raise FileNotFoundError("no checkpoint in '%s'" % path)
    return Checkpoint(found or path)
