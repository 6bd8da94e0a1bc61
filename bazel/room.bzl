# SPDX-License-Identifier: Apache-2.0
"""room: one folder of the line, as a library that only rooms to its right may use.

The line stands here once; visibility holds it. A room is made of every .c, .cc and .h file in its
folder (and `kernels/`, for the engine); tests, benches and examples may use any room.
"""

load("//bazel:protobuf_c.bzl", "protobuf_c_library")

# room -> the rooms it may use
LINE = {
    "base": [],
    "graph": ["base"],
    "bundle": ["base", "graph"],
    "wire": ["base", "graph", "bundle"],
    "master": ["base", "graph", "bundle", "wire"],
    "ready": ["base", "graph", "bundle", "wire", "master"],
    "saver": ["base", "graph", "bundle", "wire", "master", "ready"],
    "session": ["base", "graph", "bundle", "wire", "master", "ready", "saver"],
    "train": ["base", "graph", "bundle", "wire", "master", "ready", "saver", "session"],
    # beside the line: only the command joins them
    "engine": ["base", "graph", "bundle", "master"],
    "server": ["base", "graph", "bundle", "wire", "master", "ready"],
    "runtime": ["base", "graph", "bundle", "wire", "master"],
    "cli": ["base", "graph", "bundle", "wire", "master", "ready", "saver", "session", "train", "engine", "server", "runtime"],
}

_ANYONE = ["//tests:__subpackages__", "//bench:__subpackages__", "//examples:__subpackages__"]

# Of GLib, what Debian 12 has: neither newer calls nor warnings about what newer releases deprecate.
WARNINGS = [
    "-Wall",
    "-Wextra",
    "-DGLIB_VERSION_MIN_REQUIRED=GLIB_VERSION_2_74",
    "-DGLIB_VERSION_MAX_ALLOWED=GLIB_VERSION_2_74",
]

# the rooms of libmuster; libmuster-engine is the engine on top of it
LIBRARY = LINE["train"] + ["train", "runtime"]

def users_of(room):
    return _ANYONE + ["//:__pkg__"] + ["//%s:__subpackages__" % other for other in LINE if room in LINE[other]]

def room(name, protos = [], deps = [], exclude = [], copts = [], internal = []):
    """The library of folder `name`, over the rooms that LINE gives it.

    Args:
      name: the folder.
      protos: .proto files below proto/; included as "NAME/proto/FILE.pb-c.h".
      deps: system libraries.
      exclude: sources that belong to another target of the folder.
      copts: further compiler flags.
      internal: headers that aren't installed, besides *_private.h: for other rooms alone.
    """
    own = []
    if protos:
        protobuf_c_library(
            name = name + "_proto",
            srcs = protos,
            visibility = users_of(name),
        )
        own = [":" + name + "_proto"]
        native.exports_files(protos)
    native.cc_library(
        name = name,
        srcs = native.glob(["*.c", "*.cc", "kernels/*.c", "kernels/*.h"], exclude = exclude, allow_empty = True),
        hdrs = native.glob(["*.h"], allow_empty = True),
        copts = WARNINGS + copts,
        linkstatic = True,
        visibility = users_of(name),
        deps = own + ["//" + left for left in LINE[name]] + deps + [
            "@system//:gio",
            "@system//:glib",
        ],
    )
    native.exports_files(native.glob(["*.h"], exclude = ["*_private.h"] + internal))
    native.filegroup(
        name = "public_headers",
        srcs = native.glob(["*.h"], exclude = ["*_private.h"] + internal),
        visibility = ["//visibility:public"],
    )
