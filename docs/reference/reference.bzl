# SPDX-License-Identifier: Apache-2.0
"""reference: the API reference and the guides in HTML, by gi-docgen; its warnings are errors."""

load("//bazel:library.bzl", "VERSION")

def _impl(ctx):
    html = ctx.actions.declare_directory("html")
    arguments = ctx.actions.args()
    arguments.add("--version", VERSION)
    arguments.add("--output", html.path)
    arguments.add_all("--files", ctx.files.srcs)
    arguments.add_all("--sources", ctx.files.sources)
    arguments.use_param_file("@%s", use_always = True)
    arguments.set_param_file_format("multiline")
    ctx.actions.run_shell(
        command = "exec /usr/bin/python3 -B %s \"$@\"" % [file.path for file in ctx.files._scripts if file.basename == "make.py"][0],
        arguments = [arguments],
        inputs = ctx.files.srcs + ctx.files.sources + ctx.files._scripts,
        outputs = [html],
        mnemonic = "Reference",
        progress_message = "Writing the reference",
        use_default_shell_env = True,
    )
    return [DefaultInfo(files = depset([html]), runfiles = ctx.runfiles([html]))]

reference = rule(
    implementation = _impl,
    attrs = {
        # .gir files, guides, and the files that guides link to
        "srcs": attr.label_list(allow_files = True, mandatory = True),
        # C files, whose errors are listed
        "sources": attr.label_list(allow_files = True, mandatory = True),
        "_scripts": attr.label(default = "//docs/reference:scripts"),
    },
)
