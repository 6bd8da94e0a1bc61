# SPDX-License-Identifier: Apache-2.0
"""What differs between an outcome of TensorFlow and one of the engine, and which of that stays."""
from recording import *
from tensorflow.core.framework import types_pb2

DIFFERENT = {"values", "refused", "accepted", "codes", "muster crashed"}


def alike(a, b):
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind not in "fVc":
        return np.array_equal(a, b)
    wide = np.complex128 if a.dtype.kind == "c" else F64
    with np.errstate(all="ignore"):
        close = 3e-2 if a.dtype in (F16, bf16) else 1e-4 if a.dtype in (F32, np.complex64) else 1e-9
        a, b = a.astype(wide), b.astype(wide)
        return np.allclose(a, b, rtol=close, atol=close, equal_nan=True)


def shown(value):
    value = np.asarray(value)
    if not value.size:
        return "empty%s" % list(value.shape)
    return np.array2string(np.asarray(value), threshold=12, separator=",").replace("\n", "")[:160]


def words(error):
    """An error's own text, without Python's frames."""
    lines = [l for l in error.message.split("\n\nOriginal stack")[0].splitlines() if l.strip() and not l.startswith(("\t", "    "))]
    lines = [l for l in lines if not l.startswith(("Graph execution", "Detected at", "Node:", "  File"))]
    lines = [l.removeprefix("From /job:localhost/replica:0/task:0:") for l in lines]
    return "".join(lines)[:200]


def difference(theirs, wanted, ours, got):
    if theirs is None and ours is None:
        bad = [(i, w, g) for i, (w, g) in enumerate(zip(wanted, got)) if not alike(w, g)]
        return ("values", "output %d: TensorFlow %s, muster %s" % (bad[0][0], shown(bad[0][1]), shown(bad[0][2]))) if bad else ("same", "")
    if theirs is None:
        return "refused", "TensorFlow %s; muster: %s" % ([shown(w) for w in wanted][:2], words(ours))
    if ours is None:
        return "accepted", "TensorFlow: %s; muster %s" % (words(theirs), [shown(g) for g in got][:2])
    if theirs.error_code != ours.error_code:
        return "codes", "TensorFlow %d %s; muster %d %s" % (theirs.error_code, words(theirs), ours.error_code, words(ours))
    return "same", ""


class Difference:
    """What a rule of UNDEFINED judges: the kind; the graph's operations and attributes; what was fed; both outcomes."""

    def __init__(self, kind, graph, feeds, theirs, wanted, ours, got):
        nodes = [n for n in graph.node if n.op not in ("Placeholder", "Const")]
        self.kind, self.ops = kind, {n.op for n in nodes}
        self.attrs = {n: a for node in nodes for n, a in node.attr.items()}
        self.inputs = [np.asarray(v) for v in feeds.values()]
        self.theirs, self.ours = (e.message if e else "" for e in (theirs, ours))
        self.pairs = {} if theirs or ours else {
            i: (np.asarray(w), np.asarray(g)) for i, (w, g) in enumerate(zip(wanted, got)) if not alike(w, g)}

    def has(self, *names):
        return any(op.startswith(names) for op in self.ops)

    def is_empty(self):
        return any(x.size == 0 for x in self.inputs)

    def is_large(self, most=1e15):
        return any(x.dtype.kind in "fVc" and not (np.abs(x.astype(np.complex128)) < most).all() for x in self.inputs)

    def agrees_where(self, test):
        """Both outcomes are alike but in elements that the test accepts in TensorFlow's and in ours."""
        for w, g in self.pairs.values():
            if w.shape != g.shape or w.dtype.kind not in "fVc":
                return False
            odd = test(w.astype(np.complex128)) | test(g.astype(np.complex128))
            if not alike(np.where(odd, 0, w), np.where(odd, 0, g)):
                return False
        return self.kind == "values"

    def is_unordered(self):
        """The first input, of indices, has rows that repeat, go back or are outside of the shape behind it."""
        indices, shape = self.inputs[0], self.inputs[2]
        return indices.ndim == 2 and shape.shape == indices.shape[1:] and (
            (indices < 0).any() or (indices >= shape).any() or [*map(tuple, indices)] != sorted({*map(tuple, indices)}))


def is_odd(x):
    return ~np.isfinite(x)


# Where TensorFlow's result is undefined, is a fault of its own or depends on its memory, and the engine doesn't repeat it; and what
# the engine leaves out by decision.
UNDEFINED = {
    "memory is taken before the arguments are checked": lambda d: d.kind == "codes" and "OOM when allocating" in d.theirs,
    "which of two faults is told": lambda d: d.kind == "codes" and ("no store supports" in d.ours or "has too many elements" in d.ours),
    "larger than a message": lambda d: "need a message of" in d.ours,
    "complex division by zero: infinite or NaN by the place in a vector":
        lambda d: d.has("Div", "RealDiv", "Xdivy", "Reciprocal", "Inv", "SqrtGrad") and d.agrees_where(is_odd),
    "complex numbers whose squares overflow":
        lambda d: d.kind == "values" and d.is_large() and any(x.dtype.kind == "c" for x in d.inputs),
    "complex numbers have no order": lambda d: d.has("ClipByValue") and d.inputs[0].dtype.kind == "c",
    "a decomposition of what isn't finite or is singular": lambda d: d.has("Qr") and d.kind == "values" and (
        d.is_large() or (np.linalg.matrix_rank(d.inputs[0].astype(np.complex128)) < min(d.inputs[0].shape[-2:])).any()),
    "the memory of a decomposition that fails": lambda d: d.has("Cholesky") and all(np.isnan(w).any() for w, g in d.pairs.values()),
    "moments of nothing, or what inference leaves unset":
        lambda d: d.has("FusedBatchNorm") and d.kind == "values" and (d.is_empty() or not set(d.pairs) - {3, 4}),
    "the order of NaN": lambda d: d.has("TopK") and d.kind == "values" and np.isnan(d.inputs[0].astype(F64)).any(),
    "the order of an unsorted TopK": lambda d: d.has("TopK") and d.kind == "values" and not d.attrs["sorted"].b and (
        0 not in d.pairs or alike(*(np.sort(x.astype(F64)) for x in d.pairs[0]))),
    "the gradient of no segments": lambda d: d.has("SparseSegment") and d.kind == "values" and d.is_empty(),
    "an empty operand of einsum, whose size 0 counts as unknown": lambda d: d.has("Einsum") and d.is_empty() and "xpected dimension" in d.ours,
    "a threshold of another type, of which a part is read": lambda d: d.has("SparseAdd") and ("The threshold for" in d.ours or "attr 'Treal'" in d.ours),
    "sparse indices out of order or bounds":
        lambda d: d.has("SparseReduce", "SparseSoftmax", "SetSize") and d.kind in ("refused", "values") and d.is_unordered(),
    "a slice whose end overflows": lambda d: d.has("SparseSlice") and d.kind in ("values", "refused") and
        any((np.abs(x.astype(F64)) > 2**62).any() for x in d.inputs[3:5]),
    "an axis of int16, read as an int32": lambda d: d.has("ArgM") and d.attrs["Tidx"].type == types_pb2.DT_INT16,
    "a negative bin, written in front of the result": lambda d: d.has("DenseBincount") and "must be non-negative" in d.ours,
    "an attribute that the engine refuses by name": lambda d: "which muster's own engine doesn't support" in d.ours,
    "a vector of indices, of which TensorFlow's kernels write the first alone; its graphs of known shapes refuse one":
        lambda d: d.has("ScatterNd", "ResourceScatterNd") and d.kind == "refused" and d.inputs[1].ndim == 1,
    "rounded integers": lambda d: d.has("Round") and d.kind == "values" and d.inputs[0].dtype.kind in "iu",
}
