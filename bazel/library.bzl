# SPDX-License-Identifier: Apache-2.0
"""shared_library: a shared library made of all the code of some modules, with a soname and a version script; or a program.

Linked by hand rather than by cc_binary, so that every object of a module goes in whether or not something here
uses it, and so that no path of this machine gets into what is installed.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

# As base/version.h says it; tests/install looks whether they agree.
VERSION = "0.1.0"

# What a wheel's library has inside.
INSIDE = ["grpc", "gpr", "upb", "address_sorting", "cares", "ssl", "crypto"]

def _archives(modules):
    """The archives of these modules, by package."""
    packages = {dep.label.package: None for dep in modules}
    parts = depset(transitive = [dep[CcInfo].linking_context.linker_inputs for dep in modules]).to_list()
    return [library.pic_static_library for part in parts if part.owner.package in packages for library in part.libraries]

def _version_script(ctx):
    """What the library exports: what its headers declare, and what another library of ours uses besides."""
    output = ctx.actions.declare_file("exports/%s.lds" % ctx.label.name)
    users = _archives(ctx.attr.used_by)
    arguments = ctx.actions.args()
    arguments.add(output)
    arguments.add(ctx.attr.node)
    arguments.add_all(users, format_each = "--users=%s")
    arguments.add_all(ctx.files.headers)
    ctx.actions.run_shell(
        command = "exec /usr/bin/python3 -B %s \"$@\"" % ctx.file._exports.path,
        arguments = [arguments],
        inputs = users + ctx.files.headers + [ctx.file._exports],
        outputs = [output],
        mnemonic = "Exports",
        progress_message = "Listing the exports of %s" % ctx.label.name,
        use_default_shell_env = True,
    )
    return output

def _impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    output = ctx.actions.declare_file(ctx.label.name)
    modules = {dep.label.package: None for dep in ctx.attr.modules}
    whole = {}
    messages = {}  # generated code: what is used of it stays inside each library
    flags = {}
    for part in depset(transitive = [dep[CcInfo].linking_context.linker_inputs for dep in ctx.attr.modules + ctx.attr.needs]).to_list():
        flags.update({flag: None for flag in part.user_link_flags})
        for library in part.libraries:
            archive = library.pic_static_library
            if part.owner.package.endswith("/proto"):
                messages[archive] = None
            elif part.owner.package in modules:
                whole[archive] = None
            elif not ctx.files.over:
                fail("%s uses %s, which isn't among its modules" % (ctx.label, part.owner))

    # What another library of ours has inside isn't linked again.
    inside = ["-l" + name for name in ctx.attr.inside]
    outside = [flag for flag in flags.keys() if flag not in inside]
    exports = []
    arguments = ctx.actions.args()
    arguments.add_all(ctx.fragments.cpp.linkopts)
    arguments.add("-o", output)
    if ctx.attr.soname:
        exports = [_version_script(ctx)]
        arguments.add("-shared")
        arguments.add("-Wl,-soname," + ctx.attr.soname)
        arguments.add("-Wl,--version-script," + exports[0].path)
    arguments.add_all(["-Wl,-z,defs", "-Wl,-z,relro", "-Wl,-z,now", "-Wl,--as-needed", "-Wl,--build-id=sha1"])
    arguments.add("-Wl,--whole-archive")
    arguments.add_all(whole.keys())
    arguments.add("-Wl,--no-whole-archive")
    arguments.add_all(messages.keys())
    arguments.add_all(ctx.files.over)
    if inside and not ctx.files.over:
        # Functions of OpenSSL's that we replace come first.
        arguments.add_all(["-Wl,-z,muldefs", "-Wl,-Bstatic", "-Wl,--start-group"] + inside + ["-Wl,--end-group", "-Wl,-Bdynamic"])
    arguments.add_all(outside)
    arguments.add_all(["-lstdc++", "-lm", "-pthread"])
    ctx.actions.run(
        executable = toolchain.compiler_executable,
        arguments = [arguments],
        inputs = depset(
            whole.keys() + messages.keys() + ctx.files.over + exports,
            transitive = [toolchain.all_files],
        ),
        outputs = [output],
        mnemonic = "LinkModules",
        progress_message = "Linking %s" % output.short_path,
        use_default_shell_env = True,
    )
    return [DefaultInfo(files = depset([output]), runfiles = ctx.runfiles([output]))]

shared_library = rule(
    implementation = _impl,
    attrs = {
        "headers": attr.label_list(allow_files = True),
        # libraries that are linked statically, and that nobody sees; in a program, those that "over" has so
        "inside": attr.string_list(),
        # the version of the symbols
        "node": attr.string(),
        # shared libraries that have what the modules use besides
        "over": attr.label_list(allow_files = True),
        "modules": attr.label_list(providers = [CcInfo], mandatory = True),
        # what those that are inside need
        "needs": attr.label_list(providers = [CcInfo]),
        # none: a program
        "soname": attr.string(),
        # modules of another library, which uses more than the headers
        "used_by": attr.label_list(providers = [CcInfo]),
        "_exports": attr.label(default = "//bazel:exports.py", allow_single_file = True),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
