# SPDX-License-Identifier: Apache-2.0
"""doc_test: what documents show as code is compiled and run."""

def doc_test(name, documents):
    """Documents beside what is installed; not for sanitizers, with which that isn't made.

    Args:
      name: the test.
      documents: labels of Markdown.
    """
    native.sh_test(
        name = name,
        size = "medium",
        srcs = ["doc_test.py"],
        args = ["$(rootpath %s)" % document for document in documents],
        data = documents + [
            "//:install",
            "//tests/fixtures:digits",
            "//tests/tensorflow:peer.py",
        ],
        tags = ["nosan"],
    )
