# SPDX-License-Identifier: Apache-2.0
"""Candidate samplers and random numbers: with fixed seeds, step after step."""
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


SEED = np.array([7, -11], I64)


def sources():
    for seed in [SEED, np.array([1, 2], I32), np.array([2**40, 2**62], I64)]:
        op("StatelessRandomGetKeyCounter", dict(seed=seed))
        op("StatelessRandomGetKeyCounterAlg", dict(seed=seed))
    op("StatelessRandomGetKeyCounter", dict(seed=np.zeros(3, I64)), words="seed must have shape [2], not [3]")
    op("StatelessRandomGetAlg", {})


KEY = dict(key=np.array([2**63 + 12345], np.uint64), counter=np.array([2**64 - 2, 77], np.uint64))


def stateless():
    for shape in [np.array([5, 3], I32), np.array([7], I64), np.array([], I32), np.array([2, 0], I32)]:
        for t in [tf.float32, tf.float64, tf.half, tf.bfloat16]:
            for name in ["StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal"]:
                op(name, dict(shape=shape, seed=SEED), dtype=t)
                op(name + "V2", dict(shape=shape, alg=I32(1), **KEY), dtype=t)
        for t in [tf.int32, tf.int64, tf.uint32, tf.uint64]:
            op("StatelessRandomUniformFullInt", dict(shape=shape, seed=SEED), dtype=t)
            op("StatelessRandomUniformFullIntV2", dict(shape=shape, alg=I32(3), **KEY), dtype=t)
        for t in [I32, I64]:
            ends = dict(minval=t(-5), maxval=t(1000))
            op("StatelessRandomUniformInt", dict(shape=shape, seed=SEED, **ends))
            op("StatelessRandomUniformIntV2", dict(shape=shape, alg=I32(1), **KEY, **ends))
    shape = np.array([3], I32)
    op("StatelessRandomUniformInt", dict(shape=shape, seed=SEED, minval=I32(3), maxval=I32(3)),
       words="Need minval < maxval, got 3 >= 3")
    op("StatelessRandomNormal", dict(shape=shape, seed=SEED[:1]), words="seed must have shape [2], not [1]")
    op("StatelessRandomNormal", dict(shape=I32(3), seed=SEED), words="shape must be a vector of {int32,int64}, got shape []")
    op("StatelessRandomNormal", dict(shape=-shape, seed=SEED), words="Dimension -3 must be >= 0")
    op("StatelessRandomNormalV2", dict(shape=shape, alg=I32(2), **KEY), words="Unsupported algorithm id: 2")
    op("StatelessRandomNormalV2", dict(shape=shape, alg=np.array([1], I32), **KEY),
       words="input 3 (0-based) must have shape [], not [1]")
    op("StatelessRandomNormalV2", dict(shape=shape, alg=I32(1), key=KEY["counter"], counter=KEY["counter"]),
       words="key must have shape [1], not [2].")
    op("StatelessRandomNormalV2", dict(shape=shape, alg=I32(1), key=KEY["key"], counter=np.uint64(1)), words=True)


def sampled():
    logits = np.array([[1, 2, -3, .5, 0], [-1e3, 5, 5, 5.5, -np.inf], [0, np.nan, np.inf, 3, 1]])
    for dtype in FLOATS:
        for t in [tf.int32, tf.int64]:
            drawn("Multinomial", dict(logits=logits.astype(dtype), num_samples=I32(9)), output_dtype=t, seed=3, seed2=4)
            op("StatelessMultinomial", dict(logits=logits.astype(dtype), num_samples=I32(9), seed=SEED), output_dtype=t)
    logits = logits.astype(F32)
    drawn("Multinomial", dict(logits=logits, num_samples=I32(0)), seed=3)
    drawn("Multinomial", dict(logits=np.full((2, 3), -np.inf, F32), num_samples=I32(2)), seed=3)
    drawn("Multinomial", dict(logits=logits[0], num_samples=I32(2)), seed=3, words="logits should be a matrix, got shape [5]")
    drawn("Multinomial", dict(logits=logits, num_samples=I32(-2)), seed=3,
          words="num_samples should be non-negative, got -2")
    drawn("Multinomial", dict(logits=logits[:, :0], num_samples=I32(2)), seed=3,
          words="num_classes should be positive, got 0")
    shape, alpha = np.array([2, 3], I32), np.array([1, .5, 2, 30, .01, 0, -1, np.inf])
    for dtype in [F32, F64, F16]:
        drawn("RandomGamma", dict(shape=shape, alpha=alpha.astype(dtype)), seed=3, seed2=4)
        op("StatelessRandomGammaV2", dict(shape=np.array([4, 8], I32), seed=SEED, alpha=alpha.astype(dtype)))
        op("StatelessRandomGammaV3", dict(shape=np.array([4, 8], I32), alpha=alpha.astype(dtype), alg=I32(1), **KEY))
    drawn("RandomGamma", dict(shape=np.array([0], I32), alpha=alpha), seed=3)
    drawn("RandomGamma", dict(shape=shape, alpha=F32(3)), seed=3)
    op("StatelessRandomGammaV2", dict(shape=np.array([4], I32), seed=SEED, alpha=alpha),
       words="Shape passed in must end with broadcasted shape.")
    rates = np.array([0, .5, 3, 9, 10, 50, 1000, -1])
    for of in [F32, F64, F16, I32, I64]:
        for t in [tf.float32, tf.float64, tf.half, tf.int32, tf.int64]:
            drawn("RandomPoissonV2", dict(shape=shape, rate=rates.astype(of)), dtype=t, seed=3, seed2=4)
            op("StatelessRandomPoisson", dict(shape=np.array([4, 8], I32), seed=SEED, lam=rates.astype(of)), dtype=t)
    drawn("RandomPoissonV2", dict(shape=shape, rate=np.array([], F32)), seed=3)


ALL = [candidates, fixed_candidates, hits, sources, stateless, sampled]
