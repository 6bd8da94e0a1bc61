# SPDX-License-Identifier: Apache-2.0
"""Tests of real processes: scripts, and the programs that they start."""

load("//bazel:module.bzl", "WARNINGS")

# As on a person's machine; what a test expects of another locale it sets itself.
UTF8 = {"LC_ALL": "C.UTF-8"}

def process_test(name, script = None, data = [], size = "medium", **kwargs):
    """A script that starts `muster`, with what the scripts share (tests/scenarios/processes.py).

    Args:
      name: the test.
      script: where it isn't NAME.py.
      data: what else it needs.
      size: as for Bazel.
      **kwargs: further arguments of sh_test.
    """
    native.sh_test(
        name = name,
        size = size,
        srcs = [script or name + ".py"],
        data = [
            "//bazel:lsan.supp",
            "//cli:muster",
            "//tests/scenarios:processes.py",
            "//tests/tensorflow:peer.py",
        ] + data,
        env = UTF8,
        **kwargs
    )

def tensorflow_test(name, script = None, args = [], data = [], size = "medium", cpus = 1, tags = []):
    """A script with TensorFlow as a peer, in the environment that bazel/setup --tests makes; skipped where it is absent.

    "nosan": its interpreter isn't built with our sanitizers, and is slow enough without them.

    Args:
      name: the test.
      script: where it isn't NAME.py; of this folder or a label.
      args: the script's.
      data: what it needs besides peer.py and `muster`.
      size: as for Bazel.
      cpus: how many it keeps busy.
      tags: others than the above.
    """
    script = script or name + ".py"
    native.sh_test(
        name = name,
        size = size,
        srcs = ["//tests/tensorflow:with_tensorflow.sh"],
        args = ["$(rootpath %s)" % script] + args,
        data = [
            script,
            "//cli:muster",
            "//tests/tensorflow:peer.py",
        ] + data,
        env = UTF8,
        tags = ["nosan"] + (["cpu:%d" % cpus] if cpus > 1 else []) + tags,
    )

def tool(name, deps, **kwargs):
    """A program in C, NAME.c, that a script starts."""
    native.cc_binary(
        name = name,
        testonly = True,
        srcs = [name + ".c"],
        copts = WARNINGS,
        deps = deps,
        **kwargs
    )
