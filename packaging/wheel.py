#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""bazel run //:wheel -- [--output=DIR] [--python=PYTHON]...: makes muster's wheel for this machine's kind.

packaging/aarch64.sh makes another kind's: --root=DIR is a Debian of that kind, whose Python it is for, and --built=DIR has what was compiled.

It has all that muster needs but Python, glibc, libstdc++ and zlib: PyGObject as each PYTHON has it (that which bazel/setup --tests
makes, unless any are named; each is another version of Python), GLib with its introspection, and what the library and the
command are linked with. docs/decisions/0033 says why. It runs where glibc is at least as new as this machine's symbols need.
"""
import argparse
import base64
import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

FROM = os.environ.get("BUILD_WORKING_DIRECTORY", os.getcwd())
BESIDE = sys.argv[0] + ".runfiles/muster"
PYGOBJECT = os.environ.get("MUSTER_PYGOBJECT", os.path.expanduser("~/.cache/muster/pygobject")) + "/bin/python3"
# Part of every system that a wheel may be for, as auditwheel's policies have it.
OUTSIDE = re.compile(r"(ld-linux-[\w-]+|lib(c|m|dl|rt|pthread|resolv|stdc\+\+|gcc_s|z))\.so\.\d+")
TYPELIBS = ("GLib", "GObject", "GModule", "Gio")
OVERRIDES = ("__init__", "GLib", "GObject", "Gio")  # PyGObject's, of the typelibs
LINKED_IN = ("libgrpc-dev", "libssl-dev", "libc-ares-dev")  # Debian's packages, for their licences
SHARE = ("muster/examples", "muster/monitoring", "man", "bash-completion", "zsh", "fish")
METADATA = """Metadata-Version: 2.1
Name: muster
Version: {version}
Summary: Session manager and readiness runtime for TensorFlow 1-style training
License: Apache-2.0
Requires-Python: >=3.9
Requires-Dist: numpy
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Description-Content-Type: text/markdown

"""


def output_of(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


class Machine:
    """What a wheel is for: this machine's kind, or that of the Debian in a folder."""

    def __init__(self, root, built):
        self.root, self.built = root, built
        self.libraries, = glob.glob(root + "/usr/lib/*-linux-gnu") if root else ["/usr/lib/%s-linux-gnu" % os.uname().machine]
        self.triplet = os.path.basename(self.libraries)
        self.name = self.triplet.partition("-")[0]
        self.strip = self.triplet + "-strip"

    def here(self, path):
        """What this machine has in a path's place."""
        return path[len(self.root):].replace(self.triplet, os.uname().machine + "-linux-gnu")


class Tree:
    """What the wheel holds, in a folder."""

    def __init__(self, folder, version, machine):
        self.folder, self.version, self.machine = folder, version, machine
        self.library = folder + "/muster/lib"
        self.data = "%s/muster-%s.data" % (folder, version)
        self.info = "%s/muster-%s.dist-info" % (folder, version)

    def put(self, source, to):
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copy(source, to)
        os.chmod(to, 0o755 if os.access(source, os.X_OK) else 0o644)

    def put_all(self, source, to, is_wanted=lambda path: True):
        for at, _, names in os.walk(source):
            for name in names:
                path = os.path.relpath(os.path.join(at, name), source)
                if is_wanted(path) and "__pycache__" not in path:
                    self.put(os.path.join(at, name), os.path.join(to, path))

    def put_binary(self, source, to, *folders):
        """A library or program, which finds others in these folders; `strip` goes first, since it breaks what patchelf has moved."""
        self.put(source, to)
        os.chmod(to, 0o755)
        subprocess.run([self.machine.strip, "--strip-unneeded", to], check=True)
        if folders:
            subprocess.run(["patchelf", "--force-rpath", "--set-rpath", ":".join("$ORIGIN/" + folder for folder in folders), to], check=True)


def gi_folder(python):
    """Where a Python has its PyGObject, and the tag of that Python."""
    return output_of(python, "-c", "import gi, sys; print(gi.__path__[0], 'cp%d%d' % sys.version_info[:2])").split()


def gi_folders(machine, pythons):
    """The same of all that the wheel is for."""
    if machine.root:
        found, = glob.glob(machine.root + "/usr/lib/python3/dist-packages/gi/_gi.cpython-*.so")
        return [(os.path.dirname(found), "cp" + found.split("-")[-4])]
    return sorted((gi_folder(os.path.join(FROM, each)) for each in pythons or [PYGOBJECT]), key=lambda one: int(one[1][len("cp3"):]))


def is_gis(path):
    folder, name = os.path.split(path)
    if folder == "overrides":
        return os.path.splitext(name)[0] in OVERRIDES
    return "_gi_cairo" not in name and "gtk" not in name


def put_python(tree, stage, pythons):
    """muster, and in muster/carried gi for each Python, whose C has another name for each."""
    tree.put_all(stage + "/share/muster/python/muster", tree.folder + "/muster")
    carried = tree.folder + "/muster/carried"
    for folder, _ in pythons:
        tree.put_all(folder, carried + "/gi", is_gis)
    tree.put_all(stage + "/share/muster/python/gi", carried + "/gi")
    for path in glob.glob(carried + "/gi/_gi.*.so"):
        tree.put_binary(path, path + ".new", "../../lib")
        os.replace(path + ".new", path)


def put_typelibs(tree, stage):
    for name in TYPELIBS:
        tree.put("%s/girepository-1.0/%s-2.0.typelib" % (tree.machine.libraries, name), "%s/muster/carried/girepository-1.0/%s-2.0.typelib" % (tree.folder, name))
    for name in ("Muster", "MusterEngine"):
        tree.put("%s/lib/girepository-1.0/%s-0.typelib" % (stage, name), "%s/girepository-1.0/%s-0.typelib" % (tree.library, name))


def put_types(tree, stage):
    """The types of gi.repository are muster's own here: gi-stubs is pygobject-stubs' folder."""
    types = tree.folder + "/muster/_types"
    tree.put_all(stage + "/share/muster/python/stubs/gi", types)
    for path in [tree.folder + "/muster/__init__.pyi", *glob.glob(types + "/**/*.pyi", recursive=True)]:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(re.sub(r"^from gi\.", "from muster._types.", text, flags=re.M))


def needed(machine, paths):
    """The libraries that these need, by name, but for what is part of the system."""
    found, left = {}, list(paths)
    while left:
        for name in re.findall(r"\(NEEDED\).*\[(.*)\]", output_of("readelf", "--dynamic", left.pop())):
            if name not in found and not OUTSIDE.fullmatch(name) and not name.startswith("libmuster"):
                found[name] = machine.libraries + "/" + name
                left.append(found[name])
    return found


def put_libraries(tree, pythons):
    """Returns the files of others that were carried."""
    built = tree.machine.built
    own = {"libmuster.so.0": built + "/inside/libmuster.so.0", "libmuster-engine.so.0": "%s/libmuster-engine.so.%s" % (built, tree.version)}
    folders = ["../lib/python3.%s/%s-packages/muster/lib" % (tag[len("cp3"):], kind) for _, tag in pythons for kind in ("site", "dist")]
    modules = [path for folder, _ in pythons for path in glob.glob(folder + "/_gi.*.so")]
    carried = needed(tree.machine, [*own.values(), built + "/inside/muster", *modules])
    for name, file in {**own, **carried}.items():
        tree.put_binary(file, tree.library + "/" + name, "")
    tree.put_binary(built + "/inside/muster", tree.data + "/scripts/muster", *folders, "../muster/lib", "../../muster/lib")
    tree.put_binary(built + "/tensorflow/muster-tensorflow", tree.folder + "/muster/libexec/muster/muster-tensorflow")
    return [tree.machine.here(file) for file in carried.values()]


def packages_of(files):
    """Debian's packages of libraries; the lists of their files may have them below /usr or not."""
    searched = [path for file in files for path in {file, "/usr" + file, file.replace("/usr/", "/", 1)}]
    said = subprocess.run(["dpkg-query", "--search", *searched], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    found = {os.path.basename(path): package for package, path in re.findall(r"^([\w.+-]+)[^/]*: (/\S+)$", said, re.M)}
    unknown = [file for file in files if os.path.basename(file) not in found]
    if unknown:
        raise SystemExit("wheel: no package has '%s', so its licence isn't known" % unknown[0])
    return set(found.values())


def put_licences(tree, files):
    licences = tree.info + "/licenses"
    tree.put("LICENSE", licences + "/LICENSE")
    for package in sorted({*packages_of(files), *LINKED_IN, "python3-gi"}):
        path = "/usr/share/doc/%s/copyright" % package
        tree.put(path, "%s/%s.txt" % (licences, package))
        with open(path, encoding="utf-8") as file:
            for common in re.findall(r"/usr/share/common-licenses/[\w.-]*\w", file.read()):
                tree.put(common, licences + "/common-licenses/" + os.path.basename(common))


def platform(tree):
    """As auditwheel finds it: by the newest of glibc's symbols."""
    newest = 0
    for at, _, names in os.walk(tree.folder):
        for name in names:
            with open(os.path.join(at, name), "rb") as file:
                if file.read(4) == b"\x7fELF":
                    versions = re.findall(r"\bGLIBC_2\.(\d+)", output_of("readelf", "--version-info", file.name))
                    newest = max([newest, *map(int, versions)])
    return "manylinux_2_%d_%s" % (newest, tree.machine.name)


def put_metadata(tree, tag):
    os.makedirs(tree.info, exist_ok=True)
    with open("README.md", encoding="utf-8") as readme, open(tree.info + "/METADATA", "w", encoding="utf-8") as file:
        file.write(METADATA.format(version=tree.version) + readme.read())
    python, abi, machine = tag.split("-")
    tags = ["%s-%s-%s" % (each, each, machine) for each in python.split(".")]
    with open(tree.info + "/WHEEL", "w", encoding="ascii") as file:
        file.write("Wheel-Version: 1.0\nGenerator: muster\nRoot-Is-Purelib: false\n" + "".join("Tag: %s\n" % each for each in tags))


def pack(tree, path):
    """In one order and of one time, so that the same tree gives the same file."""
    record = os.path.relpath(tree.info, tree.folder) + "/RECORD"
    lines = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        def add(name, content, mode):
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.external_attr, info.compress_type = (0o100000 | mode) << 16, zipfile.ZIP_DEFLATED
            wheel.writestr(info, content)

        files = sorted(os.path.join(at, name) for at, _, names in os.walk(tree.folder) for name in names)
        for file in files:
            with open(file, "rb") as opened:
                content = opened.read()
            name = os.path.relpath(file, tree.folder)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines.append("%s,sha256=%s,%d\n" % (name, digest, len(content)))
            add(name, content, os.stat(file).st_mode & 0o777)
        add(record, "".join(lines) + record + ",,\n", 0o644)


def make(arguments, work):
    machine = Machine(os.path.join(FROM, arguments.root), os.path.join(FROM, arguments.built)) if arguments.root else Machine("", ".")
    for tool in ("patchelf", machine.strip, "readelf"):
        if shutil.which(tool) is None:
            raise SystemExit("wheel: %s is not installed: run bazel/setup" % tool)
    subprocess.run(["./install", "--prefix=" + work + "/stage"], check=True, stdout=subprocess.DEVNULL)
    version = output_of(work + "/stage/bin/muster", "--version").split()[-1]
    pythons = gi_folders(machine, arguments.python)
    tree = Tree(work + "/tree", version, machine)
    put_python(tree, work + "/stage", pythons)
    put_typelibs(tree, work + "/stage")
    put_types(tree, work + "/stage")
    put_licences(tree, put_libraries(tree, pythons))
    for name in SHARE:
        tree.put_all("%s/stage/share/%s" % (work, name), "%s/data/share/%s" % (tree.data, name))
    tags = ".".join(tag for _, tag in pythons)
    tag = "-".join([tags, tags, platform(tree)])
    put_metadata(tree, tag)
    path = "%s/muster-%s-%s.whl" % (os.path.join(FROM, arguments.output), version, tag)
    pack(tree, path)
    print("made %s, %.1f MB" % (path, os.path.getsize(path) / 1e6))


def main():
    parser = argparse.ArgumentParser(usage="wheel [--output=DIR] [--python=PYTHON]...")
    parser.add_argument("--output", default=".")
    parser.add_argument("--python", action="append")
    parser.add_argument("--root")
    parser.add_argument("--built")
    arguments = parser.parse_args()
    if os.path.isdir(BESIDE):
        os.chdir(BESIDE)
    with tempfile.TemporaryDirectory() as work:
        make(arguments, work)


if __name__ == "__main__":
    main()
