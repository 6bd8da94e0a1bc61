#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes compile_commands.json at the workspace root from `bazel aquery`."""
import json, os, subprocess, sys

root = os.environ.get("BUILD_WORKSPACE_DIRECTORY") or os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
bazel = os.environ.get("BAZEL", "bazel").split()
flags = sys.argv[1:]
base = subprocess.run(bazel + ["info", "execution_root"], cwd=root, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.strip()
text = subprocess.run(bazel + ["aquery", "--output=jsonproto", "--include_artifacts=false", *flags, 'mnemonic("CppCompile", //...)'], cwd=root, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
commands, seen = [], set()
for action in json.loads(text).get("actions", ()):
    words = [w for w in action["arguments"] if w not in ("-fno-canonical-system-headers", "-Wno-free-nonheap-object", "-Wunused-but-set-parameter")]
    if "-c" not in words:
        continue
    source = words[words.index("-c") + 1]
    if source in seen or source.startswith("external/"):
        continue
    seen.add(source)
    commands.append({"directory": base, "file": source if source.startswith("bazel-out/") else os.path.join(root, source), "arguments": words})
with open(os.path.join(root, "compile_commands.json"), "w") as file:
    json.dump(commands, file, indent=1)
print("compile_commands.json: %d files" % len(commands))
