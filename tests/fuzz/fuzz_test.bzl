# SPDX-License-Identifier: Apache-2.0
"""fuzz_test: a libFuzzer target, which is a test as well. Only --config=fuzz links it: it needs clang."""

load("//bazel:module.bzl", "WARNINGS")

def fuzz_test(name, deps, srcs = [], data = [], **kwargs):
    # compiled by every build, so that a change of a header is told at once
    native.cc_library(
        name = name + "_code",
        testonly = True,
        srcs = [name + ".c"] + srcs,
        copts = WARNINGS,
        deps = deps + [":fuzz"],
    )
    native.cc_test(
        name = name,
        # an hour with --config=long
        size = "small",
        srcs = [name + ".c"] + srcs,
        copts = WARNINGS,
        data = [
            "//tests/fixtures:digits",
            "//tests/fixtures:optimizers",
        ] + data,
        linkopts = ["-fsanitize=fuzzer"],
        linkstatic = True,
        tags = ["fuzz"],
        deps = deps + [":fuzz"],
        **kwargs
    )
