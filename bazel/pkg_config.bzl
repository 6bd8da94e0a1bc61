# SPDX-License-Identifier: Apache-2.0
"""cc_library targets made from what pkg-config says of this machine.

system_libraries(name = "system", ...) gives @system//:glib, @system//:grpc, ...
and @system//:<tool> for each tool found on PATH. What is absent fails here, except
for only_tests: those fail when something that uses them is built.

Include directories outside the compiler's own (/usr/include/glib-2.0,
/usr/lib/x86_64-linux-gnu/glib-2.0/include, ...) are symlinked into the
repository and put on -isystem, so that Bazel's check of the headers a
compilation read passes. Libraries come from the linker's own directories.
"""

_DEFAULT_DIRS = ["/usr/include", "/usr/include/x86_64-linux-gnu", "/usr/include/aarch64-linux-gnu", "/usr/local/include"]

_LIBRARY = """cc_library(
    name = {name},
    hdrs = glob({globs}, allow_empty = True),
    defines = {defines},
    includes = {includes},
    linkopts = {linkopts},
    visibility = ["//visibility:public"],
)
"""

# What only tests use may be absent, as long as nobody builds it.
_ABSENT = """genrule(
    name = {genrule},
    outs = [{header}],
    cmd = "echo {name} is not installed: run bazel/setup --tests >&2; exit 1",
)
cc_library(
    name = {quoted},
    hdrs = [{genrule}],
    visibility = ["//visibility:public"],
)
"""

def _absent(name):
    return _ABSENT.format(
        name = name,
        quoted = repr(name),
        genrule = repr(name + "_is_absent"),
        header = repr(name + "_is_absent.h"),
    )

def _pkg_config(ctx, pkg_config, arguments):
    result = ctx.execute([pkg_config] + arguments)
    if result.return_code != 0:
        fail("pkg-config %s: %s\nrun bazel/setup first" % (" ".join(arguments), result.stderr))
    return [word for word in result.stdout.replace("\n", " ").split(" ") if word]

def _unique(words):
    return {word: None for word in words}.keys()

def _normal(path):
    return path[:-1] if path.endswith("/") and len(path) > 1 else path

def _impl(ctx):
    pkg_config = ctx.which("pkg-config")
    if pkg_config == None:
        fail("pkg-config is not on PATH; run bazel/setup first")
    build = ['package(default_visibility = ["//visibility:public"])\n']
    linked = {}  # real directory -> its name in this repository

    def_dirs = {d: None for d in _DEFAULT_DIRS}
    for name, modules in ctx.attr.packages.items():
        if name in ctx.attr.only_tests and ctx.execute([pkg_config, "--exists"] + modules).return_code != 0:
            build.append(_absent(name))
            continue
        cflags = _pkg_config(ctx, pkg_config, ["--cflags"] + modules)
        libs = _pkg_config(ctx, pkg_config, ["--libs"] + modules)

        includes = []
        defines = []
        for flag in cflags:
            if flag.startswith("-I"):
                directory = _normal(flag[2:])
                if directory in def_dirs:
                    continue
                if directory not in linked:
                    alias = "include/" + directory[1:].replace("/", "_")
                    ctx.symlink(directory, alias)
                    linked[directory] = alias
                includes.append(linked[directory])
            elif flag.startswith("-D"):
                defines.append(flag[2:])

        linkopts = []
        keep = ctx.attr.keep_libs.get(name)
        for flag in libs:
            if flag.startswith("-l") and keep != None and flag[2:] not in keep:
                continue
            if flag.startswith("-l") or flag.startswith("-L") or flag == "-pthread" or flag.startswith("-Wl,-rpath"):
                linkopts.append(flag)
        includes = _unique(includes)
        build.append(_LIBRARY.format(
            name = repr(name),
            globs = repr([i + "/**/*.h" for i in includes]),
            defines = repr(_unique(defines)),
            includes = repr(includes),
            linkopts = repr(_unique(linkopts)),
        ))

    for name, probe in ctx.attr.plain.items():
        found = [d for d in _DEFAULT_DIRS if ctx.path(d + "/" + probe[0]).exists]
        if not found:
            fail("%s: no header %s; run bazel/setup first" % (name, probe[0]))
        build.append(_LIBRARY.format(
            name = repr(name),
            globs = "[]",
            defines = "[]",
            includes = "[]",
            linkopts = repr(["-l" + lib for lib in probe[1:]]),
        ))

    for tool in ctx.attr.tools:
        path = ctx.which(tool)
        if path == None:
            fail("%s is not on PATH; run bazel/setup first" % tool)
        ctx.symlink(path, "tool/" + tool)
        build.append('filegroup(name = %s, srcs = [%s])\n' % (repr(tool), repr("tool/" + tool)))

    ctx.file("BUILD", "\n".join(build))

system_libraries = repository_rule(
    implementation = _impl,
    attrs = {
        "keep_libs": attr.string_list_dict(),
        "only_tests": attr.string_list(),
        "packages": attr.string_list_dict(mandatory = True),
        "plain": attr.string_list_dict(),
        "tools": attr.string_list(),
    },
    configure = True,
    environ = ["PKG_CONFIG_PATH", "PATH"],
    local = True,
)
