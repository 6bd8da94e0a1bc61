# SPDX-License-Identifier: Apache-2.0
"""Cases for strings, what is printed, and summaries."""
from recording import *

WORDS = np.array([["Hello", "  a b\tc \n"], ["", "naïve Äpfel"]])


def edits():
    for name in ["StringLower", "StringUpper", "StringStrip", "StringLength", "EncodeBase64"]:
        op(name, dict(input=WORDS))
        op(name, dict(input=np.array("Xy ")))
    for name in ["StringLower", "StringUpper"]:
        op(name, dict(input=WORDS), encoding="utf-8")
    op("StringLength", dict(input=WORDS), unit="UTF8_CHAR")
    op("EncodeBase64", dict(input=np.array([b"\xff\xfe\xfd", b"ab", b"a"], object)), pad=True)
    op("DecodeBase64", dict(input=np.array(["SGVsbG8", "", "__79", "YQ==", "YQ"])))
    op("DecodeBase64", dict(input=np.array(["a"])), words=True)
    op("DecodeBase64", dict(input=np.array(["a+bc"])), words=True)
    for pos, n in [(0, 2), (1, 3), (-2, 2), (2, 100)]:
        op("Substr", dict(input=np.array(["Hello", "world", "abc"]), pos=I32(pos), len=I32(n)))
        op("Substr", dict(input=np.array(["Hellö", "wörld", "äbc"]), pos=I64(pos), len=I64(n)), unit="UTF8_CHAR")
    op("Substr", dict(input=np.array(["Hello", "world"]), pos=np.array([1, 2], I32), len=np.array([1, 2], I32)))
    op("Substr", dict(input=np.array([["Hello"], ["world"]]), pos=np.array([1, 2], I32), len=np.array([1, 2], I32)))
    op("Substr", dict(input=np.array("Hello"), pos=np.array([1, 2], I32), len=np.array([1, 2], I32)))
    op("Substr", dict(input=np.array(["abc"]), pos=I32(5), len=I32(1)),
       words="pos 5 out of range for string b'abc' at index 0")
    op("Substr", dict(input=np.array(["abc"]), pos=np.array([1, 1], I32), len=I32(1)), words=True)
    x = np.array([["a", "b"], ["c", "d"]])
    for axes in [[0], [1], [-1], [0, 1], [1, 0], []]:
        op("ReduceJoin", dict(inputs=x, reduction_indices=np.array(axes, I32)), separator=".")
    op("ReduceJoin", dict(inputs=x, reduction_indices=np.array([0], I32)), keep_dims=True)
    op("ReduceJoin", dict(inputs=x, reduction_indices=np.array([2], I32)), words=True)
    op("ReduceJoin", dict(inputs=x, reduction_indices=np.array([1, 1], I32)), words=True)
    for pattern, rewrite in [("a(.)", "<\\1>"), ("^", "x"), ("l+", ""), ("[aeiou]", "\\0\\0")]:
        for everywhere in [True, False]:
            op("StaticRegexReplace", dict(input=np.array(["abcabc", "hello", ""])), pattern=pattern, rewrite=rewrite,
               replace_global=everywhere)
    op("RegexReplace", dict(input=np.array(["abcabc"]), pattern=np.array("b"), rewrite=np.array("-")))
    for pattern, rewrite in (("b", r"[\1]"), ("(b)|(q)", r"<\2\\>"), ("(b)(c)", r"\2\0\10")):
        for everywhere in (True, False):
            op("StaticRegexReplace", dict(input=np.array(["abcabc", "hello", ""])), pattern=pattern, rewrite=rewrite,
               replace_global=everywhere)
    op("StaticRegexReplace", dict(input=np.array(["a"])), pattern="(", rewrite="", words=True)


def splits():
    lines = np.array(["a b  c", "", " d ", "e,f;;g"])
    for delimiter in [" ", ",;", "", "b "]:
        for skip in [True, False]:
            op("StringSplit", dict(input=lines, delimiter=np.array(delimiter)), skip_empty=skip)
    for sep in ["", " ", ";", "b  ", ";;"]:
        for most in [-1, 0, 1, 2]:
            op("StringSplitV2", dict(input=lines, sep=np.array(sep)), maxsplit=most)
    op("StringSplit", dict(input=np.array("a"), delimiter=np.array(" ")), words=True)
    op("StringSplit", dict(input=lines, delimiter=np.array([" "])), words=True)
    op("StringSplit", dict(input=np.array([], object), delimiter=np.array(" ")))


def hashes():
    texts = np.array(["x" * n for n in list(range(0, 40)) + [63, 64, 65, 100, 127, 128, 129, 200, 300]] +
                     ["the quick brown fox jumps over the lazy dog %d" % i * (i + 1) for i in range(6)])
    for name in ["StringToHashBucketFast", "StringToHashBucketStrong", "StringToHashBucket"]:
        x = dict(string_tensor=texts) if name == "StringToHashBucket" else dict(input=texts)
        attrs = dict(key=[123456789, -987654321]) if name.endswith("Strong") else {}
        for n in [1, 10, 2**62]:
            op(name, x, num_buckets=n, **attrs)


def texts():
    for x in [numbers(F32, 6), numbers(F64, 6) * 1e10, numbers(F16, 6), numbers(bf16, 6),
              np.array([1e30, 1e-30, np.inf, np.nan, -0., 123456.7], F32)]:
        op("AsString", dict(input=x))
        op("AsString", dict(input=x), scientific=True)
        op("AsString", dict(input=x), shortest=True)
        op("AsString", dict(input=x), precision=2, width=12, fill="0")
        op("AsString", dict(input=x), precision=3, shortest=True, width=12)
    for dtype in [np.int8, np.int16, I32, I64, np.uint8, np.uint16, np.uint32, np.uint64]:
        op("AsString", dict(input=numbers(dtype, 5)))
        op("AsString", dict(input=numbers(dtype, 5)), width=5, fill="0")
        op("AsString", dict(input=numbers(dtype, 5)), width=5, fill="-")
    op("AsString", dict(input=np.array([2**64 - 1], np.uint64)))
    op("AsString", dict(input=np.array([True, False])))
    op("AsString", dict(input=np.array(["a", "bcd"])))
    op("AsString", dict(input=np.array(["a", "bcd"])), width=3)
    op("AsString", dict(input=np.array([1 + 2j, -.5j], np.complex64)))
    op("AsString", dict(input=np.array([1 + 2j, -.5j], np.complex128)), precision=1)
    op("AsString", dict(input=numbers(I32, 3)), scientific=True, words=True)
    op("AsString", dict(input=numbers(I32, 3)), precision=3, words=True)
    op("AsString", dict(input=numbers(F32, 3)), shortest=True, scientific=True, words=True)
    op("AsString", dict(input=numbers(F32, 3)), width=3, fill="ab", words=True)
    op("AsString", dict(input=numbers(F32, 3)), width=3, fill="x", words=True)
    for t, good, bad in [(tf.float32, ["1.5", " -2e3 ", "inf", "1e-50"], "1.5x"),
                         (tf.float64, ["1.5", "-2e300", "3"], ""), (tf.int32, ["12", " -7 "], "1.5"),
                         (tf.int64, ["9223372036854775807", "-1"], "9223372036854775808"),
                         (tf.int32, ["1"], "2147483648")]:
        op("StringToNumber", dict(string_tensor=np.array(good)), out_type=t)
        op("StringToNumber", dict(string_tensor=np.array([bad])), out_type=t,
           words="StringToNumberOp could not correctly convert string: " + bad)
    raws = np.array([bytes(range(16)), bytes(range(16, 32))], object)
    for t in [tf.uint8, tf.int16, tf.int32, tf.int64, tf.float32, tf.float64, tf.half, tf.complex64, tf.bool]:
        op("DecodeRaw", dict(bytes=raws if t != tf.bool else np.array([b"\0\1"], object)), out_type=t)
        if t != tf.bool:
            op("DecodeRaw", dict(bytes=raws), out_type=t, little_endian=False)
    op("DecodeRaw", dict(bytes=np.array([b"abc"], object)), out_type=tf.int16, words=True)
    op("DecodeRaw", dict(bytes=np.array([b"abc", b"a"], object)), out_type=tf.uint8, words=True)
    for x in [numbers(F32, 2, 3), np.array(["a", "b"]), I64(7), numbers(F16, 3)]:
        p = tf.make_tensor_proto(x).SerializeToString()
        op("ParseTensor", dict(serialized=np.array(p, object)), out_type=tf.as_dtype(tf.make_tensor_proto(x).dtype))
        op("SerializeTensor", dict(tensor=x))
    op("ParseTensor", dict(serialized=np.array(p, object)), out_type=tf.int32, words=True)
    op("ParseTensor", dict(serialized=np.array(b"\xff\xff", object)), out_type=tf.int32, words=True)
    values = [numbers(F32, 8) / 3, numbers(I32, 2, 3), numbers(F64, 3, 2, 4) / 7, np.array(["x y", "z"]), F32(2.5),
              np.array("one"), np.zeros((0,), F32), np.zeros((2, 0), I32), np.array([True, False]),
              np.array([[["a"], ["b"]], [["c"], ["d"]]]), numbers(F32, 7, 2)]
    for x in values:
        for n in [3, -1, 1, 100]:
            op("StringFormat", dict(inputs=[x]), template="a %s b", placeholder="%s", summarize=n)
            if x.size != 0:
                op("Assert", dict(condition=np.array(False), data=[x]), summarize=n,
                   words=lambda message: "assertion" +
                   message.split("assertion", 1)[1].split("\n\t [[{{node")[0])
    op("StringFormat", dict(inputs=[]), template="nothing", placeholder="{}")
    op("StringFormat", dict(inputs=[I32(1)]), template="{} {}", placeholder="{}", words=True)
    op("PrintV2", dict(input=np.array("printed")), output_stream="stdout")
    op("Print", dict(input=numbers(F32, 2), data=[numbers(I32, 3)]), message="m: ", first_n=1)


def summaries():
    for dtype in [F32, F64, I32, I64, F16, np.uint8]:
        op("HistogramSummary", dict(tag=np.array("h"), values=numbers(dtype, 5, 4)))
    op("HistogramSummary", dict(tag=np.array("h"), values=np.array([1e30, -1e30, 0, -0., 1e-20, 1e-12], F64)))
    op("HistogramSummary", dict(tag=np.array("h"), values=np.zeros(3, F32)))
    op("HistogramSummary", dict(tag=np.array("h"), values=np.zeros(0, F32)))
    op("HistogramSummary", dict(tag=np.array("h"), values=F32(7)))
    op("HistogramSummary", dict(tag=np.array("h"), values=np.array([np.nan], F32)), words="Nan in summary histogram for: HistogramSummary")
    op("HistogramSummary", dict(tag=np.array("h"), values=np.array([np.inf], F32)), words="Infinity in Histogram for: HistogramSummary")
    metadata = tf1.SummaryMetadata(display_name="d", plugin_data=tf1.SummaryMetadata.PluginData(plugin_name="text", content=b"x"))
    for x in [np.array(["some text"]), numbers(F32, 2, 2)]:
        op("TensorSummaryV2", dict(tag=np.array("t"), tensor=x,
                                   serialized_summary_metadata=np.array(metadata.SerializeToString(), object)))
        op("TensorSummary", dict(tensor=x))


ALL = [edits, splits, hashes, texts, summaries]
