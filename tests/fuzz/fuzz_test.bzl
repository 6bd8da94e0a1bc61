# SPDX-License-Identifier: Apache-2.0
"""fuzz_test: a libFuzzer target, which is a test as well. Only --config=fuzz builds it: it needs clang."""

load("//bazel:module.bzl", "WARNINGS")

def fuzz_test(name, deps, srcs = [], data = [], **kwargs):
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
