# SPDX-License-Identifier: Apache-2.0
"""The errors by code: what each asks of the caller, the messages that come with it, and the functions that fail so.

Read from the C files: a call of muster_fail () names the code and the message; the functions are the public ones from
which it is reached by calls within its module. A call through a pointer isn't followed, and what a function passes on
from another module isn't repeated here.
"""
import collections
import dataclasses
import html
import re

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*|(\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+')", re.DOTALL)
DEFINITION = re.compile(r"^([a-z]\w+) \([^;{}]*\)\n\{\n(.*?)^\}", re.DOTALL | re.MULTILINE)
CALL = re.compile(r"\b([a-z]\w+) \(")
FAIL = re.compile(r"\bmuster_fail \(")
CODE = re.compile(r"MUSTER_ERROR_[A-Z_]+$")
STRING = re.compile(r'"((?:\\.|[^"\\])*)"')
CONVERSION = re.compile(r"%[-+ #0]*[\d*]*(?:\.[\d*]+)?[hlzjt]*[diouxXeEfgGscp]")
PIECE = re.compile(STRING.pattern + r"|\bG_G\w+_FORMAT\b|\bPRI\w+\b|\b([A-Z][A-Z0-9_]+)\b")  # of a format
ROW = re.compile(r"^\| ((?:`[A-Z_]+`[^|]*)) \| (.*?) \|$", re.MULTILINE)
SUBCLASS = re.compile(r'^_status\("(\w+)", globals\(\)\["(\w+)"\]', re.MULTILINE)
MOST_FUNCTIONS = 6

NUMBERS = ["CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
           "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
           "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"]


@dataclasses.dataclass(frozen=True)
class Failure:
    code: str  # without MUSTER_ERROR_
    message: str
    path: str


@dataclasses.dataclass
class Function:
    name: str
    path: str
    calls: set
    failures: list


def arguments(text, start):
    """The arguments of the call whose parenthesis opens before start."""
    depth, at, found, begin = 1, start, [], start
    while depth:
        if text[at] == '"':
            at = STRING.match(text, at).end()
            continue
        if text[at] == "'":
            at = re.compile(r"'(?:\\.|[^'\\])+'").match(text, at).end()
            continue
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if (text[at] == "," and depth == 1) or not depth:
            found.append(text[begin:at].strip())
            begin = at + 1
        at += 1
    return found


def outside(text, wanted, start=0):
    """Where a character first stands outside of strings, brackets and other conditional expressions; -1: nowhere"""
    depth = 0
    for match in re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])+\'|.', re.DOTALL).finditer(text, start):
        if match.group() == wanted and depth == 0:
            return match.start()
        depth += {"(": 1, "?": 1, ")": -1, ":": -1}.get(match.group(), 0)
    return -1


def formats_of(argument):
    """The formats among which a conditional expression chooses; any other argument is one."""
    question = outside(argument, "?")
    if question < 0:
        return [argument]
    colon = outside(argument, ":", question + 1)
    return formats_of(argument[question + 1:colon]) + formats_of(argument[colon + 1:])


def message_of(formatted):
    """A format as a reader sees it: … where a value stands."""
    text = "".join("s" if piece.lastindex is None else "%s" if piece[2] else piece[1] for piece in PIECE.finditer(formatted))
    text = text.replace('\\"', '"').replace("\\n", " ").replace("\\\\", "\\")
    return re.sub(r"%(?=s)|\x00", "%", re.sub("…+", "…", CONVERSION.sub("…", text))).replace("%%", "%").strip()


def failures_in(body, path):
    for match in FAIL.finditer(body):
        words = arguments(body, match.end())
        if len(words) > 2 and CODE.match(words[1]):
            for message in map(message_of, formats_of(words[2])):
                if re.search(r"\w{3}", message):
                    yield Failure(words[1].replace("MUSTER_ERROR_", ""), message, path)


def functions_of(path, text):
    text = COMMENT.sub(lambda match: match.group(1) or "", text)
    for match in DEFINITION.finditer(text):
        yield Function(match.group(1), path, set(CALL.findall(match.group(2))), list(failures_in(match.group(2), path)))


class Calls:
    """Who calls whom within a module. Functions of one file may have the names of others' static ones."""

    def __init__(self, sources):
        self.by_file, self.of_module = {}, collections.defaultdict(dict)
        for path, text in sorted(sources.items()):
            for function in functions_of(path, text):
                self.by_file.setdefault(path, {})[function.name] = function
                if function.name.startswith("muster_"):
                    self.of_module[path.split("/")[0]][function.name] = function

    def callees(self, function):
        own, others = self.by_file[function.path], self.of_module[function.path.split("/")[0]]
        return [own.get(name) or others[name] for name in sorted(function.calls) if name in own or name in others]

    def failures(self, function):
        """What a function fails with, itself or by what it calls in its module."""
        seen, waiting, found = {(function.path, function.name)}, [function], []
        while waiting:
            one = waiting.pop()
            found += one.failures
            for callee in self.callees(one):
                if (callee.path, callee.name) not in seen:
                    seen.add((callee.path, callee.name))
                    waiting.append(callee)
        return found

    def all(self):
        return [failure for functions in self.by_file.values() for function in functions.values()
                for failure in function.failures]


def index(sources, symbols):
    """code -> message -> (its module, the public functions that fail so)"""
    calls = Calls(sources)
    public = {symbol.name for symbol in symbols}
    functions = collections.defaultdict(set)
    for module in calls.of_module.values():
        for name, function in module.items():
            if name in public:
                for failure in calls.failures(function):
                    functions[failure].add(name)
    found = {code: {} for code in NUMBERS}
    for failure in calls.all():
        module, names = found[failure.code].get(failure.message, (failure.path.split("/")[0], set()))
        found[failure.code][failure.message] = (module, names | functions[failure])
    return found


def advice(conventions):
    """code -> what the caller does, from the table of docs/api-conventions.md"""
    found = {}
    for codes, action in ROW.findall(conventions):
        for code in re.findall(r"`([A-Z_]+)`", codes):
            found[code] = action
    return found


def functions_html(module, names, pages):
    if not names:
        return '<a href="module-%s.html">%s</a>' % (module, module)
    links = ['<a href="%s"><code>%s ()</code></a>' % (pages[name], name) for name in sorted(names)]
    if len(links) > MOST_FUNCTIONS:
        return '%d functions of <a href="module-%s.html">%s</a>' % (len(links), module, module)
    return ", ".join(links)


def in_python(code):
    return "".join(word.capitalize() for word in code.split("_"))


def markdown(sources, symbols, pages, conventions, overrides):
    """pages: a public function's name -> its page; overrides: those of PyGObject, which have an exception to each code"""
    subclasses = {}
    for name, base in SUBCLASS.findall(overrides):
        subclasses.setdefault(base, []).append(name)
    found, actions = index(sources, symbols), advice(conventions)
    lines = ["Title: Errors by code", "", "# Errors by code", "",
             "muster's errors are in [error@Error], with the numbers of gRPC and TensorFlow. Decide by the code, never by the "
             "text. Errors of files are GIO's, and a call whose own `GCancellable` was cancelled fails with "
             "`G_IO_ERROR_CANCELLED`. Not ready is a result, not an error.", "",
             "Each code has its number, its exceptions in Python, what the caller does about it, and muster's own messages (… stands for a value) with "
             "the functions that fail so. A function also passes on the errors of what it calls in other modules, of "
             "a master, and of TensorFlow's operations.", ""]
    for number, code in enumerate(NUMBERS, 1):
        python = [in_python(code), *subclasses.get(in_python(code), [])]
        lines += ["## %s" % code, "", "`MUSTER_ERROR_%s`, %d; in Python %s. %s" % (
            code, number, ", ".join("`Muster.%s`" % name for name in python), sentence(actions.get(code, ""))), ""]
        rows = ["<tr><td><samp>%s</samp></td><td>%s</td></tr>" % (html.escape(message, quote=False), functions_html(*where, pages))
                for message, where in sorted(found[code].items(), key=lambda item: (item[1][0], item[0].lower()))]
        if rows:
            lines += ["<table class=\"errors\">", *rows, "</table>", ""]
    return "\n".join(lines)


def sentence(action):
    return (action[:1].upper() + action[1:] + ".") if action else ""
