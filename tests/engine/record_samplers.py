#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Candidate samplers and random numbers: with fixed seeds, step after step.

Run by hand with TensorFlow 2.21:  python3 tests/engine/record_samplers.py tests/engine/samplers.golden
"""
from recording import *

CLASSES = np.array([[0, 3], [4, 1], [0, 2]], I64)


def drawn(name, inputs=None, steps=3, words=None, **attrs):
    """An op that draws, for some steps; its inputs are fed."""
    case, feeds = Case(name), {}

    def placeholder(value):
        value = np.asarray(value)
        p = tf1.placeholder(tf.as_dtype(value.dtype))
        feeds[p] = value
        return p

    with case.graph.as_default():
        fed = {k: placeholder(v) for k, v in (inputs or {}).items()}
        try:
            out = getattr(raw, name)(**fed, **attrs)
        except ValueError as e:
            print("%s: not even TensorFlow's graph takes it: %s" % (name, str(e)[:100]))
            return
    case.start()
    for _ in range(1 if words else steps):
        case.step(tf.nest.flatten(out), feeds, words=words)
    case.end()


def sampler(name, classes=CLASSES, n=4, unique=True, **attrs):
    drawn(name, dict(true_classes=classes), num_true=classes.shape[1], num_sampled=n, unique=unique, **attrs)


def candidates():
    for name in ["UniformCandidateSampler", "LogUniformCandidateSampler", "LearnedUnigramCandidateSampler",
                 "ThreadUnsafeUnigramCandidateSampler"]:
        for unique in [False, True]:
            for range_max, n in [(5, 4), (8, 8), (7, 7), (1000, 30), (100000, 64)]:
                sampler(name, n=n, unique=unique, range_max=range_max, seed=3, seed2=range_max)
        sampler(name, n=20, unique=False, range_max=5, seed=0, seed2=1)
        drawn(name, dict(true_classes=CLASSES), num_true=2, num_sampled=6, unique=True, range_max=5, seed=1,
              words="Sampler's range is too small.")
        drawn(name, dict(true_classes=CLASSES), num_true=2, num_sampled=2, unique=True, range_max=4, seed=1,
              words="`true_candidate` out of range [0, 4), received 4")
        drawn(name, dict(true_classes=-CLASSES), num_true=2, num_sampled=2, unique=True, range_max=5, seed=1, words=True)
        drawn(name, dict(true_classes=CLASSES), num_true=3, num_sampled=2, unique=True, range_max=5, seed=1,
              words="true_classes must have num_true columns, expected: 2 was: 3")
        drawn(name, dict(true_classes=CLASSES[0]), num_true=2, num_sampled=2, unique=True, range_max=5, seed=1,
              words="true_classes must be a matrix")
        sampler(name, classes=np.zeros((0, 2), I64), range_max=5, seed=1)
    for name in ["UniformCandidateSampler", "LogUniformCandidateSampler"]:
        sampler(name, n=50, range_max=2**62 + 12345, seed=9)
    sampler("AllCandidateSampler", n=5, seed=1)
    sampler("AllCandidateSampler", n=5, unique=False, seed=1)
    drawn("AllCandidateSampler", dict(true_classes=CLASSES), num_true=2, num_sampled=4, unique=True, words=True)


def fixed_candidates():
    counts = [5., 1., 7., 2., 0., 100., 3.5]
    for unique in [False, True]:
        for distortion in [1., .75, 0.]:
            sampler("FixedUnigramCandidateSampler", unique=unique, range_max=7, unigrams=counts, distortion=distortion,
                    seed=5)
        sampler("FixedUnigramCandidateSampler", n=3, unique=unique, range_max=9, unigrams=counts, num_reserved_ids=2,
                seed=5)
        sampler("FixedUnigramCandidateSampler", n=1, unique=unique, classes=np.array([[1]]), range_max=2,
                unigrams=counts, num_shards=3, shard=1, seed=5)
        sampler("FixedUnigramCandidateSampler", n=2, unique=unique, classes=np.array([[1]]), range_max=3,
                unigrams=counts, num_shards=3, shard=0, num_reserved_ids=1, seed=5)
    sampler("FixedUnigramCandidateSampler", n=40, unique=False, range_max=1000,
            unigrams=[float(1 + i * 7919 % 1009) for i in range(1000)], seed=8)
    sampler("FixedUnigramCandidateSampler", n=8, classes=np.array([[1]]), range_max=8, unigrams=[2.] * 8, seed=8)
    fails = dict(num_true=2, num_sampled=2, unique=True, seed=1)
    classes = dict(true_classes=CLASSES)
    drawn("FixedUnigramCandidateSampler", classes, range_max=6, unigrams=counts, **fails, words=True)
    drawn("FixedUnigramCandidateSampler", classes, range_max=8, unigrams=counts, **fails,
          words="range is 8 must be equal to weights size  7")
    drawn("FixedUnigramCandidateSampler", classes, range_max=8, **fails,
          words="Must provide either vocab_file or unigrams.")
    drawn("FixedUnigramCandidateSampler", classes, range_max=8, unigrams=counts, vocab_file="x", **fails,
          words="Must only provide one of vocab_file and unigrams.")
    drawn("FixedUnigramCandidateSampler", classes, range_max=8, vocab_file="/nothing/there", **fails,
          words="/nothing/there; No such file or directory")


def hits():
    for sampled in [[4, 9, 0, 3], [0, 0, 4], [], [7]]:
        op("ComputeAccidentalHits", dict(true_classes=CLASSES, sampled_candidates=np.array(sampled, I64)), num_true=2)
    op("ComputeAccidentalHits", dict(true_classes=CLASSES, sampled_candidates=I64(3)), num_true=2, words=True)
    op("ComputeAccidentalHits", dict(true_classes=CLASSES, sampled_candidates=np.zeros(1, I64)), num_true=1,
       words="true_candidates must be a batch_size * num_true matrix")


if __name__ == "__main__":
    write([candidates, fixed_candidates, hits])
