# SPDX-License-Identifier: Apache-2.0
"""shared_library: a shared library made of all the code of some modules, with a soname and a version script.

Linked by hand rather than by cc_binary, so that every object of a module goes in whether or not something here
uses it, and so that no path of this machine gets into what is installed.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

# As base/version.h says it; tests/install looks whether they agree.
VERSION = "0.1.0"

def _impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    output = ctx.actions.declare_file(ctx.label.name)
    modules = {dep.label.package: None for dep in ctx.attr.modules}
    whole = {}
    messages = {}  # generated code: what is used of it stays inside each library
    flags = {}
    for part in depset(transitive = [dep[CcInfo].linking_context.linker_inputs for dep in ctx.attr.modules]).to_list():
        flags.update({flag: None for flag in part.user_link_flags})
        for library in part.libraries:
            archive = library.pic_static_library
            if part.owner.package.endswith("/proto"):
                messages[archive] = None
            elif part.owner.package in modules:
                whole[archive] = None
            elif not ctx.files.over:
                fail("%s uses %s, which isn't among its modules" % (ctx.label, part.owner))

    arguments = ctx.actions.args()
    arguments.add("-shared")
    arguments.add_all(ctx.fragments.cpp.linkopts)
    arguments.add("-o", output)
    arguments.add("-Wl,-soname," + ctx.attr.soname)
    arguments.add("-Wl,--version-script," + ctx.file.exports.path)
    arguments.add_all(["-Wl,-z,defs", "-Wl,-z,relro", "-Wl,-z,now", "-Wl,--as-needed", "-Wl,--build-id=sha1"])
    arguments.add("-Wl,--whole-archive")
    arguments.add_all(whole.keys())
    arguments.add("-Wl,--no-whole-archive")
    arguments.add_all(messages.keys())
    arguments.add_all(ctx.files.over)
    arguments.add_all(flags.keys())
    arguments.add_all(["-lstdc++", "-lm", "-pthread"])
    ctx.actions.run(
        executable = toolchain.compiler_executable,
        arguments = [arguments],
        inputs = depset(
            whole.keys() + messages.keys() + ctx.files.over + [ctx.file.exports],
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
        "exports": attr.label(allow_single_file = True, mandatory = True),
        # shared libraries that have what the modules use besides
        "over": attr.label_list(allow_files = True),
        "modules": attr.label_list(providers = [CcInfo], mandatory = True),
        "soname": attr.string(mandatory = True),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
