# SPDX-License-Identifier: Apache-2.0
"""muster_test: a cc_test whose sources are C files with MUSTER_TEST in them."""

load("//bazel:module.bzl", "WARNINGS")

def muster_test(name, srcs, deps = [], data = [], size = "small", **kwargs):
    native.cc_test(
        name = name,
        size = size,
        srcs = srcs,
        copts = WARNINGS,
        linkstatic = True,
        data = data + ["//bazel:lsan.supp"],
        deps = deps + ["//tests:gtest_shim"],
        **kwargs
    )
