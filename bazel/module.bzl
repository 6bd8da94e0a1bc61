# SPDX-License-Identifier: Apache-2.0
"""module: one folder of sources as a library that only the modules which name it in MODULES may use.

A folder that has subfolders is several modules: its own files are :files, each subfolder is a package of its own, and
all of them together are the folder's target, for tests, benches and examples.
"""

load("//bazel:modules.bzl", "MODULES")
load("//bazel:protobuf_c.bzl", "protobuf_c_library")

_OUTSIDERS = ["//:__pkg__", "//tests:__subpackages__", "//bench:__subpackages__", "//examples:__subpackages__"]

# GLib as Debian 12 has it: no newer calls, and no warnings about what newer releases deprecate.
WARNINGS = [
    "-Wall",
    "-Wextra",
    "-DGLIB_VERSION_MIN_REQUIRED=GLIB_VERSION_2_74",
    "-DGLIB_VERSION_MAX_ALLOWED=GLIB_VERSION_2_74",
]

def _inside(folder):
    return [name for name in MODULES if name == folder or name.startswith(folder + "/")]

def modules_of(folders):
    """The names of all modules in the given top folders."""
    return [name for folder in folders for name in _inside(folder)]

def label_of(name):
    return "//" + name + (":files" if len(_inside(name)) > 1 else "")

def labels_of(folders):
    """The targets of all modules in the given top folders, but for generated messages."""
    return [label_of(name) for name in modules_of(folders) if not name.endswith("/proto")]

def headers_of(folders):
    """The public headers of the given top folders."""
    return ["//%s:public_headers" % name for name in modules_of(folders) if not name.endswith("/proto")]

def sources_of(folders):
    """All files of the given top folders."""
    return ["//%s:sources" % name for name in modules_of(folders) if not name.endswith("/proto")]

# The folders that make up libmuster; libmuster-engine is the engine on top of it.
LIBRARY = ["base", "graph", "checkpoint", "rpc", "master", "ready", "saver", "session", "train", "callbacks", "jobs", "tensorflow"]

# The modules of the command that call OpenSSL, and those below them.
CERTS = ["//status", "//cli/output", "//cli/common", "//cli/certs"]

def _users_of(name):
    users = ["//%s:__pkg__" % other for other in MODULES if name in MODULES[other]]
    return _OUTSIDERS + users + ["//%s:__pkg__" % name.split("/")[0]]

def messages():
    """The C of this folder's .proto files; included as "FOLDER/FILE.pb-c.h"."""
    name = native.package_name()
    protos = native.glob(["*.proto"])
    protobuf_c_library(
        name = "proto",
        srcs = protos,
        visibility = _users_of(name),
    )
    native.exports_files(protos)

def module(deps = [], copts = [], exclude = [], public = [], options = []):
    """The library of this package's folder, over the modules that MODULES gives it.

    Args:
      deps: system libraries besides GLib.
      copts: further compiler flags.
      exclude: sources that belong to another target.
      options: private headers with structs that have flags.
      public: the installed headers of a folder outside the library; of one inside, all are but *_private.h.
    """
    folder = native.package_name()
    inside = _inside(folder)
    if len(inside) > 1 or folder not in MODULES:
        native.cc_library(
            name = folder.split("/")[-1],
            visibility = _OUTSIDERS,
            deps = [label_of(name) for name in inside],
        )
    if folder not in MODULES:
        return
    if folder.split("/")[0] in LIBRARY:
        public = native.glob(["*.h"], exclude = ["*_private.h"] + exclude)
    fields = []
    if public or options:
        # the tables of the structs that they declare
        fields = [folder.split("/")[-1] + "_fields.c"]
        native.genrule(
            name = "fields",
            srcs = ["//bazel:types"] + public + options,
            outs = fields,
            cmd = "exec /usr/bin/python3 -B $(location //bazel:fields.py) $@ $(SRCS)",
            tools = ["//bazel:declarations.py", "//bazel:fields.py"],
        )
    native.cc_library(
        name = label_of(folder).split(":")[-1] if len(inside) > 1 else folder.split("/")[-1],
        srcs = native.glob(["*.c"], exclude = exclude) + fields,
        hdrs = native.glob(["*.h"], exclude = exclude),
        copts = WARNINGS + copts,
        linkstatic = True,
        visibility = _users_of(folder),
        deps = [label_of(name) for name in MODULES[folder]] + deps + [
            "@system//:gio",
            "@system//:glib",
        ],
    )
    native.exports_files(public)
    native.filegroup(
        name = "public_headers",
        srcs = public,
        visibility = ["//visibility:public"],
    )

    # for the check of the map, and for the reference's errors
    native.filegroup(
        name = "sources",
        srcs = native.glob(["*.c", "*.h"]),
        visibility = [
            "//docs:__pkg__",
            "//tests:__subpackages__",
        ],
    )

# sqrt in a loop is one instruction for several elements only where nobody asks for errno; as a pragma it does nothing for
# what is a builtin.
ENGINE_COPTS = ["-fno-math-errno"]
