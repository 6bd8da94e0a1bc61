# SPDX-License-Identifier: Apache-2.0
"""Muster.Tensor and Python's values, for gi/overrides/Muster.py: arrays without a copy, numbers, lists and strings."""
import math
import struct

from gi.repository import GLib, Muster

Tensor = Muster.Tensor


def added_to(cls):
    """Adds a function to a class, also where C has one of that name; that one is then its attribute `raw`."""

    def add(function):
        function.raw = cls.__dict__.get(function.__name__)
        setattr(cls, function.__name__, function)
        return function

    return add


_TYPES = {  # dtype: (NumPy's typestr, the struct module's code)
    Muster.DType.FLOAT: ("<f4", "f"),
    Muster.DType.DOUBLE: ("<f8", "d"),
    Muster.DType.HALF: ("<f2", "e"),
    Muster.DType.BFLOAT16: ("|V2", None),
    Muster.DType.INT8: ("|i1", "b"),
    Muster.DType.INT16: ("<i2", "h"),
    Muster.DType.INT32: ("<i4", "i"),
    Muster.DType.INT64: ("<i8", "q"),
    Muster.DType.UINT8: ("|u1", "B"),
    Muster.DType.UINT16: ("<u2", "H"),
    Muster.DType.UINT32: ("<u4", "I"),
    Muster.DType.UINT64: ("<u8", "Q"),
    Muster.DType.BOOL: ("|b1", "?"),
    Muster.DType.COMPLEX64: ("<c8", "f"),
    Muster.DType.COMPLEX128: ("<c16", "d"),
}
_BY_TYPESTR = {typestr: dtype for dtype, (typestr, _) in _TYPES.items()}
_BY_TYPESTR["<V2"] = Muster.DType.BFLOAT16  # of ml_dtypes
_COMPLEX = (Muster.DType.COMPLEX64, Muster.DType.COMPLEX128)


def _name(dtype):
    return Muster.dtype_name(dtype)


def _numpy():
    try:
        import numpy
    except ImportError:
        raise ImportError("this needs NumPy: install python3-numpy") from None
    return numpy


def _bfloat16():
    """ml_dtypes' type, where it is installed; else NumPy knows the bits only."""
    try:
        import ml_dtypes
    except ImportError:
        return None
    return ml_dtypes.bfloat16


def _numpy_dtype(dtype):
    return _numpy().dtype(object if dtype == Muster.DType.STRING else _TYPES[dtype][0])


def _bits_of_bfloat16(array):
    """Rounded as muster_bfloat16_from_float () does, since NumPy has no such type."""
    numpy = _numpy()
    floats = numpy.ascontiguousarray(array, "<f4")
    bits = floats.view("<u4")
    rounded = bits + 0x7fff + (bits >> 16 & 1)
    return (numpy.where(floats != floats, bits | 0x400000, rounded) >> 16).astype("<u2").view("V2")


def _converted(array, dtype, wanted):
    """An array of such elements in row-major order, as one of a type that is wanted."""
    if dtype == Muster.DType.BFLOAT16 != wanted:
        array = (_numpy().ascontiguousarray(array).view("<u2").astype("<u4") << 16).view("<f4").reshape(array.shape)
    if wanted == Muster.DType.BFLOAT16 != dtype:
        return _bits_of_bfloat16(array).reshape(array.shape)
    return _numpy().ascontiguousarray(array, _numpy_dtype(wanted) if wanted != dtype else None).reshape(array.shape)


def _from_array(value, wanted):
    """A tensor that borrows an array's memory, and keeps the array as long as this object of it lives; of a copy where the array isn't in
    row-major order or has another type than is wanted."""
    array = _numpy().asarray(value)  # of what isn't one, too: only NumPy reads its interface right
    kind = array.dtype.str
    dtype = None if array.dtype.names else _BY_TYPESTR.get(kind)
    if kind[1] in "USO" or wanted == Muster.DType.STRING:
        values = array.ravel().tolist()
        return _from_elements(values, array.shape, wanted if values or wanted else Muster.DType.STRING)
    wanted = wanted or dtype or _BY_TYPESTR.get(kind.replace(">", "<"))
    if wanted is None or (dtype is None and kind[1] == "V"):
        raise TypeError("no tensor has elements of NumPy's type '%s'" % (array.dtype if array.dtype.names else kind))
    if dtype != wanted or not array.flags.c_contiguous:
        array = _converted(array, dtype, wanted)
    address = array.__array_interface__["data"][0]
    tensor = Muster.Tensor.new_borrowed(wanted, list(array.shape), address, array.nbytes, None)  # PyGObject never frees a function's closure
    tensor._lent = array
    return tensor


def _flatten(value, into):
    """The shape of nested lists, whose elements are appended to `into`."""
    if not isinstance(value, (list, tuple)):
        into.append(value)
        return []
    shapes = [_flatten(each, into) for each in value]
    if any(shape != shapes[0] for shape in shapes):
        raise ValueError("the lists of one level have different lengths")
    return [len(value)] + (shapes[0] if shapes else [])


def _guess(values):
    """As TensorFlow does: float for real numbers, int32 for integers that fit."""
    kinds = {type(value) for value in values}
    if kinds <= {bool} and values:
        return Muster.DType.BOOL
    if kinds <= {bool, int} and values:
        return Muster.DType.INT32 if all(-2**31 <= value < 2**31 for value in values) else Muster.DType.INT64
    if kinds <= {bool, int, float}:
        return Muster.DType.FLOAT
    if kinds <= {bool, int, float, complex}:
        return Muster.DType.COMPLEX128
    raise TypeError("no tensor can be made of %s" % ", ".join(sorted(kind.__name__ for kind in kinds)))


def _from_strings(values, shape):
    for value in values:
        if not isinstance(value, (str, bytes)):
            raise TypeError("a tensor of strings can't have an element of type %s: %r" % (type(value).__name__, value))
    texts = [value.encode() if isinstance(value, str) else bytes(value) for value in values]
    ends, end = [], 0
    for text in texts:
        end += len(text)
        ends.append(end)
    return Muster.Tensor.new_packed_strings(list(shape), GLib.Bytes.new(b"".join(texts)), ends)


def _pack(values, dtype):
    if dtype == Muster.DType.BFLOAT16:
        return struct.pack("<%dH" % len(values), *(Muster.bfloat16_from_float(value) for value in values))
    if dtype in _COMPLEX:
        values = [part for value in map(complex, values) for part in (value.real, value.imag)]
    code = _TYPES[dtype][1]
    if code in "fde":
        values = [float(value) for value in values]
    try:
        return struct.pack("<%d%s" % (len(values), code), *values)
    except struct.error as error:
        raise TypeError("a value doesn't fit a tensor of type %s: %s" % (_name(dtype), error)) from None


def _from_elements(values, shape, dtype):
    """A tensor of Python's or NumPy's scalars, in row-major order."""
    values = [value.item() if hasattr(value, "item") else value for value in values]
    if dtype == Muster.DType.STRING or any(isinstance(value, (str, bytes)) for value in values):
        if dtype not in (None, Muster.DType.STRING):
            raise TypeError("a tensor of type %s can't be made of strings" % _name(dtype))
        return _from_strings(values, shape)
    dtype = _guess(values) if dtype is None else dtype
    return Muster.Tensor.new_from_bytes(dtype, list(shape), GLib.Bytes.new(_pack(values, dtype)))


def _from_values(value, dtype):
    values = []
    shape = _flatten(value, values)
    return _from_elements(values, shape, dtype)


def to_tensor(value, dtype=None):
    """A tensor of a value; it may borrow an array's memory. dtype None: the value's own."""
    if dtype not in _TYPES and dtype not in (None, Muster.DType.STRING):
        raise TypeError("invalid dtype %r (use a value of muster.DType, such as muster.DType.FLOAT)" % (dtype,))
    if isinstance(value, Muster.Tensor) and dtype in (None, value.dtype()):
        return value
    if hasattr(value, "__array_interface__"):
        return _from_array(value, dtype)
    if isinstance(value, (bool, int, float, complex, str, bytes, list, tuple)):
        if not isinstance(value, (list, tuple)) or not any(hasattr(each, "__array__") for each in value):
            return _from_values(value, dtype)
    return _from_array(_numpy().asarray(value, None if dtype in (None, Muster.DType.BFLOAT16) else _numpy_dtype(dtype)), dtype)


def copy_of(cls, value=0.0, dtype=None):
    """Muster.Tensor (value, dtype=None): a copy of a number, string, array, or nested lists of them."""
    return to_tensor(value, dtype).keep()


def _tensor_init(self, value=0.0, dtype=None):
    """Everything is done by __new__."""


Muster.Tensor.__new__ = staticmethod(copy_of)
Muster.Tensor.__init__ = _tensor_init


def _property(name):
    def add(function):
        setattr(Muster.Tensor, name, property(function))
        return function

    return add


@_property("__array_interface__")
def _array_interface(self):
    """NumPy's view of the elements: read-only, without a copy. The array keeps the tensor alive."""
    if self.dtype() == Muster.DType.STRING:
        raise AttributeError("strings have no fixed size")  # NumPy asks __array__
    return {"version": 3, "shape": tuple(self.shape()), "typestr": _TYPES[self.dtype()][0], "data": (self.data(), True)}


@added_to(Muster.Tensor)
def __array__(self, dtype=None, copy=None):
    """For strings: an array of bytes objects, a copy."""
    if self.dtype() != Muster.DType.STRING:
        array = self.numpy()
        return array.astype(dtype) if dtype is not None and dtype != array.dtype else array.copy() if copy else array
    array = _numpy().empty(self.n_elements(), object)
    array[:] = _elements(self)
    return array.reshape(self.shape())


@added_to(Muster.Tensor)
def numpy(self):
    """The elements as an array: read-only, without a copy. Strings become bytes objects, in a copy."""
    array = _numpy().asarray(self)
    if self.dtype() == Muster.DType.BFLOAT16 and _bfloat16() is not None:
        return array.view(_bfloat16())
    return array


def _elements(self):
    """The elements as a flat list."""
    dtype = self.dtype()
    if dtype == Muster.DType.STRING:
        texts, ends = self.pack_strings()
        text = texts.get_data() or b""
        return [text[start:end] for start, end in zip([0] + ends, ends)]
    data = self.to_bytes().get_data() or b""
    if dtype == Muster.DType.BFLOAT16:
        return [Muster.bfloat16_to_float(bits) for (bits,) in struct.iter_unpack("<H", data)]
    if dtype in _COMPLEX:
        return [complex(*parts) for parts in struct.iter_unpack("<2" + _TYPES[dtype][1], data)]
    return [value for (value,) in struct.iter_unpack("<" + _TYPES[dtype][1], data)]


@added_to(Muster.Tensor)
def tolist(self):
    """The elements as nested lists; the only one, of a scalar."""
    values = _elements(self)
    for size in reversed(self.shape()[1:]):
        values = [values[i:i + size] for i in range(0, len(values), size)] if size else [[]] * math.prod(self.shape()[:1])
    return values if self.shape() else values[0]


@added_to(Muster.Tensor)
def item(self):
    """The only element, of a tensor of any rank, as a Python object."""
    if self.n_elements() != 1:
        raise ValueError("a tensor of type %s and shape %s is not a single value" % (_name(self.dtype()), self.shape()))
    return _elements(self)[0]


@added_to(Muster.Tensor)
def __float__(self):
    return float(self.get_double()[1])


@added_to(Muster.Tensor)
def __int__(self):
    value = self.item()
    return int(value)


@added_to(Muster.Tensor)
def __index__(self):
    return int(self.get_int64()[1])


@added_to(Muster.Tensor)
def __bool__(self):
    return bool(self.item())


@added_to(Muster.Tensor)
def __len__(self):
    if not self.shape():
        raise TypeError("a scalar has no length")
    return self.shape()[0]


@added_to(Muster.Tensor)
def __getitem__(self, key):
    return self.numpy()[key]


@added_to(Muster.Tensor)
def __iter__(self):
    return iter(self.numpy() if len(self.shape()) > 1 else self.tolist())


@added_to(Muster.Tensor)
def __eq__(self, other):
    """With a tensor: the same type, shape and bits. With a Python number or string: a scalar of that value."""
    if isinstance(other, Muster.Tensor):
        return self.equal(other)
    if isinstance(other, str):
        other = other.encode()
    if isinstance(other, (bool, int, float, complex, bytes)):
        return not self.shape() and self.item() == other
    return NotImplemented


@added_to(Muster.Tensor)
def __hash__(self):
    return hash(self.item() if not self.shape() else (int(self.dtype()), *self.shape()))


@added_to(Muster.Tensor)
def __reduce__(self):
    """For another process."""
    if self.dtype() == Muster.DType.STRING:
        return _from_strings, (_elements(self), self.shape())
    return _from_bytes, (int(self.dtype()), self.shape(), self.to_bytes().get_data() or b"")


def _from_bytes(dtype, shape, data):
    return Muster.Tensor.new_from_bytes(Muster.DType(dtype), shape, GLib.Bytes.new(data))


@added_to(Muster.Tensor)
def __repr__(self):
    shape = ",".join(map(str, self.shape()))
    return "<muster.Tensor %s [%s] %s>" % (_name(self.dtype()), shape, self.to_string(8))
