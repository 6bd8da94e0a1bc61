#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""C++ and the public headers: each compiles on its own with g++, all together with clang++, and every function links by its C name."""
import concurrent.futures
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
sys.path.insert(0, ROOT + "/bazel")
import declarations  # noqa: E402

STRICT = ["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
FLAGS = subprocess.run(["pkg-config", "--cflags", "gio-2.0"], check=True, capture_output=True, text=True).stdout.split()
HEADERS = sorted(os.path.relpath(path, ROOT) for path in glob.glob(ROOT + "/**/*.h", recursive=True))


def compile_headers(compiler, headers):
    """What the compiler says about a file that includes them, or nothing."""
    source = "".join('#include "%s"\n' % header for header in headers)
    done = subprocess.run([compiler, *STRICT, *FLAGS, "-I" + ROOT, "-fsyntax-only", "-x", "c++", "-"],
                          check=False, input=source, capture_output=True, text=True)
    return "" if done.returncode == 0 else "%s: %s\n%s" % (compiler, headers[0], done.stderr)


class CxxTest(unittest.TestCase):
    def test_has_headers(self):
        self.assertIn("session/manager.h", HEADERS)
        self.assertGreater(len(HEADERS), 50)

    def test_each_header_compiles_on_its_own(self):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            said = pool.map(lambda header: compile_headers("g++", [header]), HEADERS)
            wrong = [text for text in said if text]
        self.assertEqual(wrong, [], "\n".join(wrong))

    def test_all_headers_compile_together_with_clang(self):
        if not shutil.which("clang++"):
            self.skipTest("without clang++: bazel/setup --tests installs it")
        self.assertEqual(compile_headers("clang++", HEADERS), "")

    def test_every_function_links(self):
        functions = [function.name for function in declarations.read([ROOT + "/" + header for header in HEADERS])]
        with tempfile.TemporaryDirectory() as folder:
            source, program = folder + "/all.cc", folder + "/all"
            with open(source, "w", encoding="utf-8") as file:
                file.write("".join('#include "%s"\n' % header for header in HEADERS))
                file.write("void *volatile all[] = {\n%s};\n" % "".join("  (void *)&%s,\n" % name for name in functions))
                file.write("int main () { return all[0] == nullptr; }\n")
            libs = subprocess.run(["pkg-config", "--libs", "gio-2.0"], check=True, capture_output=True, text=True).stdout.split()
            ours = [path for name in ("libmuster", "libmuster-engine") for path in glob.glob("%s/%s.so.*" % (ROOT, name))]
            done = subprocess.run(["g++", "-std=c++17", *FLAGS, "-I" + ROOT, source, "-o", program, *ours, *libs,
                                   "-Wl,--allow-shlib-undefined"], check=False, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr[-4000:])
        self.assertGreater(len(functions), 600)


if __name__ == "__main__":
    unittest.main()
