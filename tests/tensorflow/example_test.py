# SPDX-License-Identifier: Apache-2.0
"""Rows that come as text or as tf.Examples: what TensorFlow's server makes of them, ours makes too."""
import random

import numpy as np
import tensorflow as tf

import peer
import side_by_side
from side_by_side import any_shape

v1 = tf.compat.v1
v1.disable_v2_behavior()
raw = tf.raw_ops
INT, TEXT, FLOAT = tf.int64, tf.string, tf.float32


def field(number, content):
    n = len(content)
    return bytes([number << 3 | 2, n] if n < 128 else [number << 3 | 2, n & 127 | 128, n >> 7]) + content


def feature(values=None, kind=None):
    """A Feature's bytes: of text, of floats or of whole numbers."""
    if values is None:
        return b""
    if kind == "float" or values and isinstance(values[0], float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values)).SerializeToString()
    if kind == "int" or values and isinstance(values[0], int):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values)).SerializeToString()
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[v.encode() for v in values])).SerializeToString()


def example(*features, **named):
    """An Example's bytes, by hand: names may come twice."""
    pairs = list(features) + [(name, feature(values)) for name, values in named.items()]
    content = b"".join(field(1, field(1, name.encode()) + field(2, value)) for name, value in pairs)
    return field(1, content)


def batch(serialized, sparse=(), dense=(), ragged=(), names=(), scalar=False):
    """ParseExampleV2; sparse: (key, type), dense: (key, default, type, shape), ragged: (key, type, splits)."""
    defaults = [any_shape(default, kind) for _, default, kind, _ in dense]
    return list(tf.nest.flatten(raw.ParseExampleV2(
        serialized=serialized if isinstance(serialized, tf.Tensor) else
        any_shape(serialized if scalar else list(serialized), TEXT), names=any_shape(list(names), TEXT),
        sparse_keys=any_shape([key for key, _ in sparse], TEXT), dense_keys=any_shape([d[0] for d in dense], TEXT),
        ragged_keys=any_shape([r[0] for r in ragged], TEXT), dense_defaults=defaults, num_sparse=len(sparse),
        sparse_types=[kind for _, kind in sparse], ragged_value_types=[kind for _, kind, _ in ragged],
        ragged_split_types=[splits for _, _, splits in ragged], dense_shapes=[shape for *_, shape in dense])))


def as_lists(value):
    if isinstance(value, (list, tuple)):
        return [as_lists(part) for part in value]
    return (value.shape, value.tolist()) if hasattr(value, "tolist") else value


class Examples(side_by_side.TestCase):
    def check(self, build):
        wanted = side_by_side.outcomes(self.theirs, build, read=as_lists)
        self.assertEqual(side_by_side.outcomes(self.ours, build, read=as_lists), wanted)
        return wanted

    def all_kinds(self, serialized, scalar=False, **how):
        dense = [("f", [0.5, 1.5], FLOAT, [2]), ("i", 7, INT, []), ("s", [["x"]], TEXT, [1, 1]),
                 ("pf", -1.0, FLOAT, [None]), ("pi", 9, INT, [None, 2]), ("ps", "pad", TEXT, [None])]
        sparse = [("sf", FLOAT), ("si", INT), ("ss", TEXT)]
        ragged = [("rf", FLOAT, INT), ("ri", INT, tf.int32), ("rs", TEXT, INT)]
        return batch(serialized, sparse, dense, ragged, scalar=scalar, **how)

    full = example(f=[1.0, 2.0], i=[3], s=["word"], pf=[1.5], pi=[1, 2, 3, 4], ps=["a", "b", ""], sf=[1.0, 2.0],
                   si=[4, -5], ss=["q"], rf=[.25], ri=[1, -2, 3], rs=["r", "rr"], other=[1])

    def test_features_of_every_kind(self):
        few = example(sf=[3.0], pf=[1.0, 2.0, 3.0], rs=["only"], si=None, ri=None)

        def build():
            return [self.all_kinds(batch) for batch in ([self.full, few, b"", self.full], [few], [], [b""] * 3)]
        self.check(build)

    def test_an_example_by_itself(self):
        few = example(sf=[3.0], pf=[1.0, 2.0, 3.0], rs=["only"], si=None, ri=None)

        def build():
            steps = [self.all_kinds(one, True) for one in (self.full, few, b"")]
            for one in (self.full, few, b""):
                steps.append(list(tf.nest.flatten(raw.ParseSingleExample(
                    serialized=any_shape(one, TEXT), dense_defaults=[any_shape([.5, 1.5], FLOAT), any_shape("x", TEXT)],
                    num_sparse=1, sparse_keys=["si"], dense_keys=["f", "ps"], sparse_types=[INT],
                    dense_shapes=[[2], [None]]))))
            return steps
        self.check(build)

    def test_the_first_generation_of_ops(self):
        def build():
            return [list(tf.nest.flatten(raw.ParseExample(
                serialized=any_shape([self.full, b""], TEXT), names=any_shape(["one", "two"], TEXT),
                sparse_keys=[any_shape("si", TEXT), any_shape("ss", TEXT)], dense_keys=[any_shape("f", TEXT)],
                dense_defaults=[any_shape(default, FLOAT)], sparse_types=[INT, TEXT], dense_shapes=[[2]])))
                    for default in ([1., 2.], [])]
        self.check(build)

    def test_programs_of_pythons_own(self):
        def build():
            rows = any_shape([self.full, example(si=[1], f=[5.0, 6.0])], TEXT)
            parsed = v1.io.parse_example(rows, {
                "f": v1.FixedLenFeature([2], FLOAT), "si": v1.VarLenFeature(INT), "ss": v1.VarLenFeature(TEXT),
                "pi": tf.io.FixedLenSequenceFeature([2], INT, allow_missing=True)})
            one = v1.io.parse_single_example(self.full, {"f": v1.FixedLenFeature([2], FLOAT),
                                                         "si": v1.VarLenFeature(INT)})
            return [[parsed["f"], parsed["pi"], v1.sparse_tensor_to_dense(parsed["si"]),
                     v1.sparse_tensor_to_dense(parsed["ss"], "")],
                    [one["f"], v1.sparse_tensor_to_dense(one["si"])]]
        self.check(build)

    def test_what_is_wrong_is_reported(self):
        wrong = [example(f=[1.0]), example(f=[1.0, 2.0, 3.0]), example(f=[1, 2]), example(i=[1, 2]), example(s=["a", "b"]),
                 example(("s", feature([], "text"))), example(pi=[1, 2, 3]), example(pf=["a"]), example(sf=[1]),
                 example(rs=[1.0]), example(("f", b"\x22\x00")), example(("sf", b"\x22\x00")), example(("ss", b"\x0a\x05\x0a\x09a")),
                 example(("si", b"\x1a\x03\x0a\x01\xff")), example(("f", b"\x12\x02\x0d\x00")), b"\x0a", b"a"]

        def build():
            steps = [self.all_kinds([b"", one]) for one in wrong]
            steps += [self.all_kinds([b"", one], names=["first", "second"]) for one in wrong[:3]]
            steps += [self.all_kinds(one, True) for one in wrong]
            required = [("f", [], FLOAT, [2])]
            steps += [batch([self.full, b""], dense=required), batch(b"", dense=required, scalar=True),
                      batch([self.full, b""], dense=required, names=["a", "b"])]
            return steps
        self.check(build)

    def test_what_cannot_be_asked_is_refused(self):
        def build():
            steps = [batch([b""], dense=[dense]) for dense in (
                ("f", [1.0], FLOAT, [2]), ("f", [1.0, 2.0], FLOAT, [None]), ("f", [], FLOAT, [None]))]
            steps += [batch([b"", b""], names=["a"]), batch([[b""]])]
            return steps
        self.check(build)

    def test_bytes_are_read_as_tensorflow_reads_them(self):
        twice = example(("si", feature([1])), ("f", feature([1.0, 2.0])), ("si", feature([2, 3])), ("f", b""),
                        ("ri", feature([4])), ("ri", b""))
        odd = [twice, example(si=[1]) + example(sf=[2.0]) + b"\x10\x05", b"\x12\x02ab" + example(si=[1]), b"\x0a\x7f" + example(
            si=[5])[2:], example(("si", b"\x1a\x06\x08\x01\x08\x02\x08\x03")), example(("sf", b"\x12\x0a\x0d\0\0\x80?\x0d\0\0\0@")),
               example(("sf", b"\x12\x08\x0a\x06\0\0\x80?ab")), field(1, field(1, field(2, feature([6])) + field(1, b"si"))),
               field(1, field(1, field(1, b"si"))), b"\x0b", b"\x0f\x01", b"\x09" + b"x" * 8, b"\x0d" + b"x" * 3]

        def build():
            return [self.all_kinds(batch) for batch in [[one] for one in odd]] + [
                self.all_kinds(one, True) for one in odd]
        self.check(build)

    def test_damaged_bytes_too(self):
        draw, damaged = random.Random(5), []
        for _ in range(120):
            content = bytearray(self.full)
            for _ in range(draw.choice((1, 1, 2))):
                content[draw.randrange(len(content))] = draw.choice((0, 1, 10, 18, 26, 127, 128, draw.randrange(256)))
            damaged.append(bytes(content[:draw.randrange(len(content))] if draw.random() < .2 else content))

        def run(target):
            answers = []
            with tf.Graph().as_default():
                rows = v1.placeholder(TEXT)
                step = self.all_kinds(rows, True)
                with v1.Session(target) as session:
                    for one in damaged:
                        for fed in (one, [one]):
                            try:
                                answers.append(as_lists(session.run(step, {rows: fed})))
                            except tf.errors.UnimplementedError:  # its words are no text, which no call can carry
                                answers.append("InvalidArgumentError")
                            except tf.errors.OpError as error:
                                answers.append(type(error).__name__)
            return answers
        got, wanted = run(self.ours), run(self.theirs)
        for i, (ours, theirs) in enumerate(zip(got, wanted)):
            self.assertEqual(repr(ours), repr(theirs), damaged[i // 2])


class Lines(side_by_side.TestCase):
    def check(self, build):
        wanted = side_by_side.outcomes(self.theirs, build, read=as_lists)
        self.assertEqual(side_by_side.outcomes(self.ours, build, read=as_lists), wanted)

    def read(self, records, defaults=((), ()), types=(INT, TEXT), **how):
        defaults = [any_shape(default, kind) for default, kind in zip(defaults, types)]
        return list(raw.DecodeCSV(records=any_shape(records, TEXT), record_defaults=defaults, **how))

    def test_columns_of_every_type(self):
        def build():
            types = (INT, tf.int32, FLOAT, tf.float64, TEXT)
            lines = ["1,2,3.5,-4e3,five", " 7 ,-8,.5,+9,  ten ", '"1","2","3","4","a ""word"", and more"']
            return [self.read(lines, [[]] * 5, types), self.read([[lines[0]], [lines[1]]], [[]] * 5, types),
                    self.read(lines[0], [[]] * 5, types), self.read([], [[]] * 5, types),
                    self.read([",,,,", "1,,,,x"], [[7], 8, [9.5], 10., "none"], types),
                    self.read(["1;2"], types=(INT, INT), field_delim=";"),
                    self.read(["1\t2"], types=(INT, INT), field_delim="\t"),
                    self.read(["NA,x", "1,NA"], ([5], ["y"]), na_value="NA"),
                    self.read(['1,"2'], types=(INT, TEXT), use_quote_delim=False),
                    self.read(["0,1,2,3,4", "5,6,7,8,"], ([], ["none"]), select_cols=[1, 4]),
                    self.read(["0,1,2,3,4\n", "5,6,7"], select_cols=[0, 2])]
        self.check(build)

    def test_what_is_wrong_is_reported(self):
        lines = ["1", "1,2,3", "x,y", ",y", "1,", "1.5,y", "3000000000000000000000,y", '1,a"b', '1,"a', '1,"a"b', '1,"a"b"',
                 '"1",', '1,""', '1,"', '"",x', "1,a\nb", "1,a\n", "\n1,a", "\r\n1,\n\na", "", ",", "\n", '"1"', "1,\0", '1,"a"\n',
                 "1,,", "0x5,y", "+5,y", "--5,y"]

        def build():
            steps = [self.read([line]) for line in lines]
            steps += [self.read(["1,a", line], ([9], ["z"])) for line in lines]
            steps += [self.read([line], select_cols=columns) for line in lines for columns in ([0, 1], [0, 2])]
            steps += [self.read(["1,2"], ([1, 2], [])), self.read(["1,2"], ([[1]], [])),
                      self.read(["1,2"], field_delim=""), self.read(["1,2"], field_delim=",,"),
                      self.read(["1,2"], select_cols=[1]), self.read(["1,2"], select_cols=[1, 0]),
                      self.read(["1,2"], select_cols=[-1, 0]), self.read(["x"], ([],), (FLOAT,)),
                      self.read(["x"], ([],), (tf.float64,)), self.read(["3000000000"], ([],), (tf.int32,))]
            return steps
        self.check(build)


if __name__ == "__main__":
    peer.main()
