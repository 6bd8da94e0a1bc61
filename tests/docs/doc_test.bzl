# SPDX-License-Identifier: Apache-2.0
"""doc_test: what a document shows as code is compiled and run."""

def doc_test(name, document):
    """One document, beside what is installed; not for sanitizers, with which that isn't made.

    Args:
      name: the test.
      document: a label of Markdown.
    """
    native.sh_test(
        name = name,
        size = "medium",
        srcs = ["doc_test.py"],
        args = ["$(rootpath %s)" % document],
        data = [
            document,
            "//:install",
            "//tests/fixtures:digits",
            "//tests/tensorflow:peer.py",
        ],
        tags = ["nosan"],
    )
