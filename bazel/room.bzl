# SPDX-License-Identifier: Apache-2.0
"""room: one folder of the line, as a library that only rooms to its right may use.

The line stands here once, and visibility enforces it (docs/decisions/0019). A room is made of every .c and .h file
below its folder; tests, benches and examples may use any room.
"""

load("//bazel:protobuf_c.bzl", "protobuf_c_library")

# room -> the rooms it may use
LINE = {
    "base": [],
    "graph": ["base"],
    "checkpoint": ["base", "graph"],
    "rpc": ["base", "graph", "checkpoint"],
    "master": ["base", "graph", "checkpoint", "rpc"],
    "ready": ["base", "graph", "checkpoint", "rpc", "master"],
    "saver": ["base", "graph", "checkpoint", "rpc", "master", "ready"],
    "session": ["base", "graph", "checkpoint", "rpc", "master", "ready", "saver"],
    "train": ["base", "graph", "checkpoint", "rpc", "master", "ready", "saver", "session"],
    "callbacks": ["base", "graph", "checkpoint", "rpc", "master", "ready", "saver", "session", "train"],
    "jobs": ["base", "graph", "checkpoint", "rpc", "master", "ready", "saver", "session", "train"],
    # beside the line: only the command joins them
    "engine": ["base", "graph", "checkpoint", "master"],
    "server": ["base", "graph", "checkpoint", "rpc", "master", "ready"],
    "tensorflow": ["base", "graph", "checkpoint", "rpc", "master"],
    "cli": ["base", "graph", "checkpoint", "rpc", "master", "ready", "saver", "session", "train", "callbacks", "jobs", "engine", "server", "tensorflow"],
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
LIBRARY = LINE["train"] + ["train", "callbacks", "jobs", "tensorflow"]

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
        srcs = native.glob(["**/*.c"], exclude = exclude),
        hdrs = native.glob(["**/*.h"], exclude = exclude),
        copts = WARNINGS + copts,
        linkstatic = True,
        visibility = users_of(name),
        deps = own + ["//" + left for left in LINE[name]] + deps + [
            "@system//:gio",
            "@system//:glib",
        ],
    )
    native.exports_files(native.glob(["**/*.h"], exclude = ["**/*_private.h"] + internal + exclude))
    native.filegroup(
        name = "public_headers",
        srcs = native.glob(["**/*.h"], exclude = ["**/*_private.h"] + internal + exclude),
        visibility = ["//visibility:public"],
    )
