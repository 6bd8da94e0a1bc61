#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The wheel: made, installed without a network into virtual environments of the test's own, and used there.

With --all also beside TensorFlow 2.15, where //tests/programs:programs_test has installed it; and every block of Python in the
documents and every test of tests/python that needs no other Python runs with it.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

PATIENCE = 120
IS_ALL = "--all" in sys.argv
CACHE = os.path.expanduser("~/.cache/muster/")
MOST_MB = 20
# With Pythons of their own, or of the bindings without muster's overrides.
OTHERS = {"bound_test.py", "callbacks_test.py", "examples_test.py", "monitored_test.py", "tensorflow_test.py", "types_test.py"}
# Part of every system with Python, whatever the wheel says.
SYSTEM = re.compile(r"(ld-linux-.*|libc|libm|libdl|librt|libpthread|libresolv|libstdc\+\+|libgcc_s|libz)\.so\.\d")


def output_of(*command, **rest):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **{"timeout": PATIENCE, **rest})
    if done.returncode != 0:
        raise AssertionError("exit %d: %s: %s" % (done.returncode, " ".join(command)[:200], done.stdout))
    return done.stdout


def packages_of(variable, name):
    """The packages of an environment in the cache, if it is there."""
    return next(iter(glob.glob(os.environ.get(variable, CACHE + name) + "/lib/python3*/site-packages")), None)


TENSORFLOWS = {name: packages for name, packages in {
    "2.21": packages_of("MUSTER_TENSORFLOW", "tensorflow"),
    "2.15": packages_of("MUSTER_PROGRAMS", "programs") if IS_ALL else None,
}.items() if packages is not None}
PYGOBJECT = packages_of("MUSTER_PYGOBJECT", "pygobject")


def make_venv(name, beside=None):
    """A virtual environment with the wheel and, if a folder of packages is given, with all of these but PyGObject."""
    path = folder + "/" + name
    if os.path.exists(path):
        return path
    output_of("/usr/bin/python3", "-m", "venv", "--without-pip", path)
    packages, = glob.glob(path + "/lib/python3*/site-packages")
    for each in os.listdir(beside) if beside is not None else ():
        if not re.match("gi$|pygobject|pycairo|cairo", each):
            os.symlink(beside + "/" + each, packages + "/" + each)
    pip, = glob.glob("/usr/share/python-wheels/pip-*.whl")  # as python3 -m venv has it, which takes seconds
    output_of(path + "/bin/python", pip + "/pip", "install", "--no-index", "--no-deps", "--disable-pip-version-check", made)
    return path


def setUpModule():
    global folder, venv, package, made
    folder = tempfile.mkdtemp(dir=os.environ["TEST_TMPDIR"])
    output_of("./wheel", "--output=" + folder)
    made, = glob.glob(folder + "/*.whl")
    venv = make_venv("venv")
    package, = glob.glob(venv + "/lib/python3*/site-packages/muster")


def environment(of=None, **more):
    """What a person has: none of the variables that an installation elsewhere needs."""
    kept = {name: os.environ[name] for name in ("HOME", "TMPDIR", "TEST_TMPDIR") if name in os.environ}
    return {**kept, "PATH": (of or venv) + "/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TF_CPP_MIN_LOG_LEVEL": "2", **more}


def python(code, *words, **rest):
    """What a program prints, in a folder of its own."""
    return output_of(venv + "/bin/python", "-c", code, *words, **{"env": environment(), "cwd": folder, **rest})


def foreign(text, pattern):
    """The libraries named there that are neither carried nor part of every system."""
    files = set(re.findall(pattern, text, re.M))
    return {each for each in files if not each.startswith(venv) and not SYSTEM.match(os.path.basename(each))}


class Made(unittest.TestCase):
    def test_is_of_the_size_that_is_promised(self):
        self.assertLess(os.path.getsize(made), MOST_MB * 1e6)

    def test_names_the_licence_of_all_that_it_carries(self):
        info, = glob.glob(os.path.dirname(package) + "/muster-*.dist-info")
        licences = os.listdir(info + "/licenses")
        for name in ("LICENSE", "libssl-dev", "libgrpc-dev", "libglib2.0", "python3-gi", "libgnutls30", "common-licenses"):
            self.assertTrue(any(each.startswith(name) for each in licences), "%s isn't in %s" % (name, licences))

    def test_shows_no_names_but_musters(self):
        names = output_of("nm", "-D", "--defined-only", "--format=posix", package + "/lib/libmuster.so.0").splitlines()
        self.assertIn("muster_session_manager_new@@MUSTER_0", [line.split()[0] for line in names])
        self.assertEqual([line for line in names if not re.match(r"muster_|MUSTER_", line)], [])

    def test_command_needs_nothing_else(self):
        for path in (venv + "/bin/muster", *glob.glob(package + "/lib/*.so.*")):
            libraries = output_of("ldd", path, env=environment())
            self.assertNotIn("not found", libraries, path)
            self.assertEqual(foreign(libraries, r"=> (/\S+) "), set(), path)

    def test_command_runs_where_the_wheel_is_only_unpacked(self):
        """As in uv's cache, to which an environment may have links."""
        with zipfile.ZipFile(made) as wheel:
            wheel.extractall(folder + "/unpacked")
        command, = glob.glob(folder + "/unpacked/muster-*.data/scripts/muster")
        os.chmod(command, 0o755)
        os.symlink(command, folder + "/link")
        self.assertRegex(output_of(folder + "/link", "--version", env=environment()), r"^muster \d")


class Used(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.examples = venv + "/share/muster/examples"

    def test_import_loads_nothing_else(self):
        maps = python("import asyncio, ctypes; before = set(open('/proc/self/maps'))\n"
                      "import muster, muster.checkpoint\n"
                      "muster.Master.new_for_target('local')\n"
                      "print(*(line for line in open('/proc/self/maps') if line not in before), muster.__version__)")
        self.assertEqual({each for each in foreign(maps, r"(/\S+\.so\S*)$") if "/lib-dynload/" not in each}, set())
        self.assertIn(package + "/lib/libmuster-engine.so.0", maps)

    def test_other_libraries_in_ld_library_path_are_not_taken(self):
        """As of an installation beside it, or a cluster's modules."""
        other = tempfile.mkdtemp(dir=folder)
        for name in ("libmuster.so.0", "libmuster-engine.so.0", "libglib-2.0.so.0"):
            shutil.copy(package + "/lib/libsnappy.so.1", other + "/" + name)
        env = environment(LD_LIBRARY_PATH=other)
        self.assertRegex(output_of("muster", "--version", env=env), r"^muster \d")
        self.assertEqual(python("import muster; print(muster.Tensor(1), muster.LocalMaster().target())", env=env), "<muster.Tensor int32 [] 1> local\n")

    def test_command_trains_the_example_and_python_reads_it(self):
        said = output_of("muster", "train", "--example", "--checkpoint-dir=" + folder + "/run", env=environment())
        self.assertIn("trained digits to step 1120", said)
        self.assertEqual(python("import muster.checkpoint; print(muster.checkpoint.open('run').tensor('global_step').item())"), "1120\n")

    def test_command_finds_the_program_for_tensorflows_runtime(self):
        done = subprocess.run(["muster", "serve", "--master=tensorflow:/usr/lib/x86_64-linux-gnu/libm.so.6"], env=environment(), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE)
        self.assertIn("it has no symbol TF_Version", done.stdout)

    @unittest.skipUnless(TENSORFLOWS, "needs TensorFlow's NumPy, which `bazel/setup --tests` installs")
    def test_trains_the_readmes_first_model(self):
        with open("README.md", encoding="utf-8") as file:
            program = re.search(r"### In Python.*?```python\n(.*?)```", file.read(), re.S).group(1)
        for version, packages in TENSORFLOWS.items():
            own, beside = tempfile.mkdtemp(dir=folder), make_venv(version, packages)
            for name in ("digits.meta", "images.npy", "labels.npy"):
                os.symlink(self.examples + "/" + name, own + "/" + name)
            said = output_of(beside + "/bin/python", "-c", program, env=environment(beside), cwd=own)
            self.assertRegex(said, r"^loss 0\.\d+, saved \S+/model.ckpt-100\n$")

    @unittest.skipUnless(TENSORFLOWS, "needs TensorFlow, which `bazel/setup --tests` installs")
    def test_calls_over_grpc_and_tls_beside_tensorflow(self):
        certs = folder + "/certs"
        output_of("muster", "certs", certs, env=environment())
        plain = self.serve().replace("localhost", "127.0.0.1")
        secure = self.serve("--tls-cert=%s/server.pem" % certs, "--tls-key=%s/server.key" % certs, "--token-file=%s/tokens" % certs)
        for version, packages in TENSORFLOWS.items():
            beside = make_venv(version, packages)
            for order in ("load_tensorflow load_muster call_tensorflow call_muster call_tensorflow",
                          "load_muster load_tensorflow call_muster call_tensorflow call_muster"):
                with self.subTest(version=version, order=order):
                    said = output_of(beside + "/bin/python", "tests/python/beside_tensorflow.py", order, plain, secure.replace("grpc:", "grpcs:"),
                                     certs + "/ca.pem", certs + "/run.token", env=environment(beside))
                    self.assertEqual(said[-5:], "done\n")

    def serve(self, *flags):
        server = subprocess.Popen(["muster", "serve", "--listen=localhost:0", *flags], env=environment(), text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL)
        self.addCleanup(server.communicate, timeout=PATIENCE)
        self.addCleanup(server.terminate)
        return "grpc://" + server.stdout.readline().split()[1].split("//")[-1]

    def test_says_that_a_wheel_has_to_be_installed(self):
        """Not named in PYTHONPATH, as Spark does with --py-files."""
        with self.assertRaisesRegex(AssertionError, r"ImportError: .* from within '.*\.whl', .*: pip install it"):
            python("import muster", env=environment(PYTHONPATH=made))

    def test_another_gi_is_used_where_there_is_one(self):
        """Debian's, whose GLib is the process' then; by PYTHONPATH rather than by an environment of its own."""
        said = python("import gi, muster\nprint(gi.__file__, muster.Tensor([1, 2]), muster.LocalMaster())",
                      env=environment(PYTHONPATH="/usr/lib/python3/dist-packages"))
        self.assertRegex(said, r"^/usr/lib/python3/dist-packages/gi/__init__.py <muster.Tensor int32 \[2\] \[1, 2\]> <muster.LocalMaster")

    def test_a_gi_that_is_too_new_stays_unused(self):
        """As PyGObject from 3.51 on is for a process, without its libraries, which need a newer GLib than Debian 12's."""
        new = tempfile.mkdtemp(dir=folder)
        for path, text in {"gi/__init__.py": "version_info, __version__ = (3, 52, 3), '3.52.3'", "gi/_gi.py": "", "gi/overrides/__init__.py": "",
                           "pygobject-3.52.3.dist-info/METADATA": ""}.items():
            os.makedirs(os.path.dirname(new + "/" + path), exist_ok=True)
            with open(new + "/" + path, "w", encoding="ascii") as file:
                file.write(text)
        env = environment(PYTHONPATH=new)
        self.assertEqual(python("import muster, gi\nprint(muster.Tensor(1), gi.__file__)", env=env), "<muster.Tensor int32 [] 1> %s/carried/gi/__init__.py\n" % package)
        with self.assertRaisesRegex(AssertionError, "ImportError: .*this process has imported 3.52.3: import muster before gi"):
            python("import gi\nimport muster", env=env)

    def test_mypy_finds_the_types(self):
        with open(folder + "/typed.py", "w", encoding="utf-8") as file:
            file.write("import muster\nmuster.Saver(muster.MetaGraph(), max_to_kep=3)\nx: int = muster.version()\n")
        done = subprocess.run(["mypy", "--python-executable=" + venv + "/bin/python", "--cache-dir=" + folder + "/mypy", folder + "/typed.py"],
                              stdout=subprocess.PIPE, text=True, timeout=PATIENCE, cwd=folder)
        self.assertIn("max_to_kep", done.stdout)
        self.assertIn("Incompatible types in assignment", done.stdout)


class All(unittest.TestCase):
    @unittest.skipUnless("2.21" in TENSORFLOWS, "needs TensorFlow, which `bazel/setup --tests` installs")
    def test_runs_every_block_of_python_in_the_documents(self):
        beside = make_venv("2.21", TENSORFLOWS["2.21"])
        documents = ["README.md", *glob.glob("docs/**/*.md", recursive=True)]
        documents = [path for path in documents if "\n```python" in open(path, encoding="utf-8").read()]
        said = output_of("/usr/bin/python3", "tests/docs/doc_test.py", "--wheel=" + beside, "-k", "*_python", *documents,
                         env=environment(beside), timeout=15 * PATIENCE)
        self.assertNotIn("skipped", said)
        print(said)

    @unittest.skipUnless(PYGOBJECT, "needs ipykernel and pytest, which `bazel/setup --tests` installs")
    def test_passes_the_tests_of_the_bindings(self):
        """A notebook's kernel, pytest's fixtures, pools of processes, Ctrl-C under asyncio and all that is tried without a wheel."""
        beside = make_venv("habits", PYGOBJECT)
        packages, = glob.glob(beside + "/lib/python3*/site-packages")
        with open(packages + "/first.pth", "w", encoding="ascii") as file:
            file.write("import muster\n")  # before the tests look for that of the work tree
        env = environment(beside, MUSTER_INSTALLED="1", MUSTER_PYGOBJECT=beside)
        for script in sorted(glob.glob("tests/python/*_test.py")):
            if os.path.basename(script) not in OTHERS:
                with self.subTest(script=script):
                    said = output_of(beside + "/bin/python", script, env=env, timeout=5 * PATIENCE)
                    self.assertNotIn("skipped", said)


def load_tests(loader, tests, _):
    return tests if IS_ALL else unittest.TestSuite(loader.loadTestsFromTestCase(each) for each in (Made, Used))


if __name__ == "__main__":
    sys.exit(unittest.main(argv=[word for word in sys.argv if word != "--all"]))
