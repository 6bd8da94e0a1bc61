#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""references.py [--write] [ROOT]: what the code and the documents refer to exists.

    B002.17, MON.45, DIFF.3   a row of docs/behaviours.md
    docs/decisions/0007       a record in docs/decisions/
    [text](docs/jobs.md#head) a file, and a heading in it
    session/wait.c            a file of the repository, below its root, the document's folder or an #include's

docs/behaviours.md is written by hand but for its last column, the tests that cite the number: in the comment above them, or
within. --write writes that column; without it a column that isn't what it would write is an error. A row without a test says
why in its sentence: "differs: ..." or "no test: ...".
"""
import fnmatch
import os
import re
import subprocess
import sys

LIST = "docs/behaviours.md"
DECISIONS = "docs/decisions"
SOURCES = (".c", ".h", ".cc", ".py", ".sh", ".proto", ".bzl", ".md", "BUILD", ".yaml")

NUMBER = r"(?:B00[0-4]|D00[034]|SAV|MON|DMON|DIFF)\.[0-9]+"
CITED = re.compile(r"\b(%s)(?: to (%s))?\b" % (NUMBER, NUMBER))
OLD = re.compile(r"\[diff\]|\bdiff(?:erence)? [0-9]+\b|\bdecision [0-9]+\b")
DECISION = re.compile(r"docs/decisions/([0-9]{4})\b")
ROW = re.compile(r"^\| (%s) \| (.*?) \| (.*?) ?\|$" % NUMBER)
TEST = re.compile(r"`(tests/[^`:]+):([A-Za-z0-9_.]+)`")
LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^)\s]+)\)")
NAMED = re.compile(r"(?<![\w./*<>$~{}:-])((?:[A-Za-z0-9_.-]+/)+[A-Za-z0-9_.-]+\.(?:c|h|cc|py|sh|proto|bzl|md))(?![\w*/-])")
BARE = re.compile(r"`((?:[A-Za-z0-9_.*-]+/)*[A-Za-z0-9_.*-]+\.(?:c|h|proto))`")
BLOCK = re.compile(r"^ *```[ \t]*(\w*)[^\n]*\n.*?^ *```[ \t]*$", re.MULTILINE | re.DOTALL)
UNRUN = re.compile(r"<!-- not run:(.*?)-->", re.DOTALL)
RUN = re.compile(r'"//(docs)?:([\w./-]+\.md)"')
BLOCKS = "tests/docs/BUILD"
FUNCTION = re.compile(r"`(muster_[a-z0-9_]+) \(\)`")  # muster_X_new () is any type's
CELL = re.compile(r"(?<!\\)\||<br>")
MOST_WORDS = 25  # of a table cell
DECLARED = re.compile(r"\b(muster_\w+) \(")
C_TEST = re.compile(r"^MUSTER_TEST ?\(\s*(\w+),\s*(\w+)\s*\)", re.MULTILINE)
PY_TEST = re.compile(r"^( +)def (test_\w+)", re.MULTILINE)


def files_of(root):
    """Paths below root that are sources; those that git knows or would add, where there is git."""
    git = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"], stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, text=True)
    if git.returncode == 0:
        paths = git.stdout.splitlines()
    else:
        paths = [os.path.relpath(os.path.join(folder, name), root)
                 for folder, folders, names in os.walk(root) for name in names]
    return sorted(path for path in paths if path.endswith(SOURCES) and os.path.isfile(os.path.join(root, path)))


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def in_full(match):
    """The numbers of one citation, which may be a range."""
    first, last = match.groups()
    if not last:
        return [first]
    area, begin = first.split(".")
    return ["%s.%d" % (area, n) for n in range(int(begin), int(last.split(".")[1]) + 1)]


def line_of(text, position):
    return text.count("\n", 0, position) + 1


# --- tests ---

def c_tests(text):
    """(name, the comments right above it and its body) of each test."""
    for match in C_TEST.finditer(text):
        begin = match.start()
        while True:
            above = re.search(r"/\*(?:(?!\*/).)*\*/\n?\Z", text[max(0, begin - 2000):begin], re.DOTALL)
            if not above or not above.group():
                break
            begin -= len(above.group())
        end = text.find("\n}", match.end())
        yield ".".join(match.groups()), text[begin:end if end >= 0 else len(text)]


def python_tests(text):
    for match in PY_TEST.finditer(text):
        begin = match.start()
        above = re.search(r"(?: *#.*\n)+\Z", text[:begin])
        after = re.compile(r"^ {0,%d}\S" % len(match.group(1)), re.MULTILINE).search(text, match.end())
        yield match.group(2), text[above.start() if above else begin:after.start() if after else len(text)]


def tests_of(path, text):
    if path.startswith("tests/") and path.endswith("_test.c"):
        return c_tests(text)
    if path.startswith("tests/") and path.endswith("_test.py") and not path.startswith("tests/docs/"):
        return python_tests(text)
    return ()


# --- docs/behaviours.md ---

class Behaviours:
    def __init__(self, text):
        self.text, self.rows, self.problems = text, {}, []
        for at, line in enumerate(text.splitlines(), 1):
            row = ROW.match(line)
            if not row:
                if re.match(r"\| *[A-Z]+[0-9]*\.", line):
                    self.problems.append("%s:%d: a row is | NUMBER | sentence | tests |" % (LIST, at))
                continue
            if row.group(1) in self.rows:
                self.problems.append("%s:%d: %s is there twice" % (LIST, at, row.group(1)))
            self.rows[row.group(1)] = (at, row.group(2), row.group(3))

    def written(self, shown):
        """The text with the tests that show each."""
        def row(match):
            return "| %s | %s | %s |" % (match.group(1), match.group(2), column(shown.get(match.group(1), [])))
        return "\n".join(ROW.sub(row, line) for line in self.text.split("\n"))


def column(tests):
    return ", ".join("`%s`" % test for test in tests)


def check_behaviours(behaviours, shown, existing):
    problems = list(behaviours.problems)
    for number, (at, sentence, tests) in behaviours.rows.items():
        place = "%s:%d: %s" % (LIST, at, number)
        for path, name in TEST.findall(tests):
            if (path, name) not in existing:
                problems.append("%s: no test %s in %s" % (place, name, path))
        without = re.search(r"\b(?:differs|no test): \S", sentence)
        if number not in shown and not without:
            problems.append("%s: no test cites it; say \"differs: ...\" or \"no test: ...\"" % place)
        if number in shown and "no test: " in sentence:
            problems.append("%s: has a test: %s" % (place, column(shown[number])))
        if tests.strip() != column(shown.get(number, [])):
            problems.append("%s: stale (run tests/docs/references.py --write)" % place)
    return problems


# --- everything else ---

def check_links(root, path, text):
    prose = re.sub(r"^```.*?^```", lambda block: "\n" * block.group().count("\n"), text, flags=re.DOTALL | re.MULTILINE)
    for match in LINK.finditer(prose):
        target, _, heading = match.group(1).partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        place = "%s:%d" % (path, line_of(prose, match.start()))
        file = os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path
        if not os.path.exists(os.path.join(root, file)):
            yield "%s: no %s" % (place, file)
        elif heading and file.endswith(".md") and heading not in headings(read(root, file)):
            yield "%s: no heading #%s in %s" % (place, heading, file)


def headings(text):
    """As GitHub makes anchors of them."""
    lines = re.findall(r"^#+ +(.*?) *$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in lines}


def comments(path, text):
    """The text with everything but comments blanked; a document is all text."""
    if path.endswith((".py", ".sh", ".bzl", "BUILD")):
        return "\n".join(re.sub(r"^[^#]*", lambda code: " " * len(code.group()), line) for line in text.split("\n"))
    if path.endswith(".md"):
        return text
    found = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
    kept, at = [], 0
    for match in found.finditer(text):
        kept.append(re.sub(r"[^\n]", " ", text[at:match.start()]))
        kept.append(match.group() if match.group()[0] == "/" else " " * len(match.group()))
        at = match.end()
    return "".join(kept)


def check_paths(root, path, text, tops, paths):
    """A path is meant where its first folder is one of the repository, or of the file's own folder. In documents a C file
    may be named without its folder, or by a pattern, and may be one that the reader writes from the page."""
    if path == "CHANGELOG.md":
        return
    prose = comments(path, text)
    if path.endswith(".md"):
        written = re.findall(r"^<!-- file: (\S+) -->$", text, re.M)
        prose = LINK.sub(lambda link: re.sub(r"[^\n]", " ", link.group()), prose)
        for match in BARE.finditer(prose):
            name = match.group(1)
            found = fnmatch.filter(paths, "*/" + name) + fnmatch.filter(paths + written, name)
            if ("/" not in name or "*" in name) and not found:
                yield "%s:%d: no file %s" % (path, line_of(prose, match.start()), name)
    for match in NAMED.finditer(prose):
        name = match.group(1)
        beside = os.path.join(os.path.dirname(path), name)
        if ".pb-c." in name:  # made by the build
            continue
        if name.split("/")[0] not in tops and not os.path.isdir(os.path.join(root, os.path.dirname(beside))):
            continue
        if not any(os.path.exists(os.path.join(root, way)) for way in (name, beside)):
            yield "%s:%d: no file %s" % (path, line_of(text, match.start()), name)


def check_blocks(path, text, run):
    """Code that a reader may take runs in a test (doc_test.py), or another that its comment names runs it."""
    for match in BLOCK.finditer(text):
        if path not in run and match.group(1) not in ("text", "mermaid"):
            yield "%s:%d: code, but %s doesn't run this document" % (path, line_of(text, match.start()), BLOCKS)
    for match in UNRUN.finditer(text):
        if not re.search(r"\btests/\S+\.(?:py|sh)\b", match.group(1)):
            yield "%s:%d: not run, without the test that runs it instead" % (path, line_of(text, match.start()))


def check_functions(path, text, declared):
    for match in FUNCTION.finditer(text):
        if match.group(1) not in declared:
            yield "%s:%d: no function %s ()" % (path, line_of(text, match.start()), match.group(1))


def check_cells(path, text):
    """A table's cell is read at a glance: what is longer stands below the table. The list of behaviours is generated."""
    prose = BLOCK.sub(lambda block: "\n" * block.group().count("\n"), text)
    for number, line in enumerate(prose.split("\n"), 1):
        cells = CELL.split(line.strip().strip("|")) if line.lstrip().startswith("|") else []
        for cell in cells if path != LIST else []:
            words = len(re.sub(r"\]\([^)]*\)", "]", cell).split())
            if words > MOST_WORDS:
                yield "%s:%d: a table cell of %d words; %d are the most" % (path, number, words, MOST_WORDS)


def check_citations(path, text, rows, decisions):
    for match in CITED.finditer(text):
        for number in in_full(match):
            if number not in rows:
                yield "%s:%d: %s isn't in %s" % (path, line_of(text, match.start()), number, LIST)
    for match in DECISION.finditer(text):
        if match.group(1) not in decisions:
            yield "%s:%d: no record %s" % (path, line_of(text, match.start()), match.group())
    for match in OLD.finditer(text):
        yield "%s:%d: \"%s\" names nothing; cite DIFF.n or docs/decisions/NNNN" % (
            path, line_of(text, match.start()), match.group())


def check(root, write=False):
    """What is wrong, a line each."""
    texts = {path: read(root, path) for path in files_of(root)}
    behaviours = Behaviours(texts[LIST])
    shown, existing = {}, set()
    for path, text in texts.items():
        for name, test in tests_of(path, text):
            existing.add((path, name))
            for number in sorted({n for match in CITED.finditer(test) for n in in_full(match)}):
                shown.setdefault(number, []).append("%s:%s" % (path, name))
    if write:
        texts[LIST] = behaviours.written(shown)
        with open(os.path.join(root, LIST), "w", encoding="utf-8") as file:
            file.write(texts[LIST])
        behaviours = Behaviours(texts[LIST])
    problems = check_behaviours(behaviours, shown, existing)
    decisions = {name[:4] for name in os.listdir(os.path.join(root, DECISIONS))}
    run = {"/".join(filter(None, match.groups())) for match in RUN.finditer(texts.get(BLOCKS, ""))}
    declared = {name for path, text in texts.items() if path.endswith((".h", ".c")) for name in DECLARED.findall(text)}
    tops = {path.split("/")[0] for path in texts if "/" in path}
    for path, text in texts.items():
        if path.startswith("tests/docs/"):  # shows how wrong ones look
            continue
        problems += check_citations(path, text, behaviours.rows, decisions)
        problems += check_paths(root, path, text, tops, list(texts))
        if path.endswith(".md"):
            problems += check_links(root, path, text)
            problems += check_blocks(path, text, run)
            problems += check_cells(path, text)
            if path != "CHANGELOG.md":  # has names of the past
                problems += check_functions(path, text, declared)
    return problems


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--write"]
    # README.md is a link from a test's files into the work tree.
    root = arguments[0] if arguments else os.path.dirname(os.path.realpath("README.md"))
    problems = check(root, write="--write" in sys.argv)
    print("\n".join(problems) if problems else "all references resolve")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
