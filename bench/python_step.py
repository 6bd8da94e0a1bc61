#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""For bench/python.c: y = -x of N floats, fed and fetched as NumPy arrays. For each line it reads, it runs a step and prints its
seconds; the argument is "local" or grpc://HOST:PORT."""
import glob
import os
import sys
import tempfile
import time

N = 1 << 28


def use_what_was_built():
    """Starts again with the libraries as if they were installed."""
    folder = tempfile.mkdtemp(prefix="muster-bench-")
    for name in ("libmuster", "libmuster-engine"):
        os.symlink(os.path.realpath(glob.glob(name + ".so.*.*.*")[0]), "%s/%s.so.0" % (folder, name))
    os.environ.update(LD_LIBRARY_PATH=folder, GI_TYPELIB_PATH=os.getcwd(), PYTHONPATH=os.getcwd() + "/python", MUSTER_BENCH_FOLDER=folder)
    os.execv(sys.executable, [sys.executable] + sys.argv)


def negation(Muster):
    builder = Muster.GraphBuilder.new()
    builder.placeholder("x", Muster.DType.FLOAT, [-1])
    builder.node("Neg", "y")
    builder.input("x")
    builder.attr_type("T", Muster.DType.FLOAT)
    return builder.end()


def main():
    import muster
    import numpy
    from gi.repository import Muster, MusterEngine

    MusterEngine.Master.offer()
    session = Muster.Master.new_for_target(sys.argv[1]).create_session(negation(Muster))
    x = numpy.ones(N, numpy.float32)
    print("ready", flush=True)
    for _ in sys.stdin:
        begun = time.monotonic()
        y = numpy.asarray(session.run("y:0", {"x:0": x}))
        took = time.monotonic() - begun
        assert y[0] == -1 and y[-1] == -1 and not y.flags.owndata
        del y
        print(took, flush=True)
    session.close()


if "MUSTER_BENCH_FOLDER" not in os.environ:
    use_what_was_built()
main()
