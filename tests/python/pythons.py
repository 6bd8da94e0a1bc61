# SPDX-License-Identifier: Apache-2.0
"""The Pythons that muster's users have: Debian's, with its PyGObject, and one with PyGObject from PyPI in a virtual environment."""
import glob
import os

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
_CACHE = os.path.expanduser("~/.cache/muster")
PYPI = os.environ.get("MUSTER_PYGOBJECT", _CACHE + "/pygobject") + "/bin/python3"
TENSORFLOW = glob.glob(os.environ.get("MUSTER_TENSORFLOW", _CACHE + "/tensorflow") + "/lib/python3*/site-packages/tensorflow")


def pythons():
    """(name, path) of each that is here."""
    found = [("debian", "/usr/bin/python3"), ("pypi", PYPI)]
    for name, path in found:
        if not os.path.exists(path):
            print("skipped: %s's needs %s, which `bazel/setup --tests` installs" % (name, path))
    return [(name, path) for name, path in found if os.path.exists(path)]


def _built(name):
    found = [path for folder in (ROOT, ROOT + "/bazel-bin") for path in sorted(glob.glob(folder + "/" + name))]
    return os.path.realpath(found[0])


def environment(folder, with_tensorflow=False):
    """For a program that finds what was built as if it were installed; folder is for links. With MUSTER_INSTALLED it is installed."""
    if "MUSTER_INSTALLED" in os.environ:
        return {**os.environ}
    for name in ("libmuster", "libmuster-engine"):
        os.symlink(_built(name + ".so.*.*.*"), "%s/%s.so.0" % (folder, name))
    for name in ("Muster-0.typelib", "MusterEngine-0.typelib"):
        os.symlink(_built(name), folder + "/" + name)
    path = [ROOT + "/python"] + ([os.path.dirname(TENSORFLOW[0])] if with_tensorflow else [])
    return {**os.environ, "LD_LIBRARY_PATH": folder, "GI_TYPELIB_PATH": folder, "PYTHONPATH": ":".join(path), "TF_CPP_MIN_LOG_LEVEL": "2",
            "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
