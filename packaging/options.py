# SPDX-License-Identifier: Apache-2.0
"""The commands of muster and their options, as the command itself says with --help."""
import re
import subprocess


def help_of(muster, *words):
    return subprocess.run([muster, *words, "--help"], check=True, text=True, capture_output=True).stdout


def listed(text):
    """The names in a list of commands, "  NAME …   what it does", with what they do."""
    return [line for line in re.findall(r"^  ([a-z]+)(?: .*?)?  +(\S.*)", text, re.M) if line[0] != "help"]


class Command:
    def __init__(self, muster, words, what):
        text = help_of(muster, *words)
        self.words = words
        self.name = " ".join(words)
        self.what = what
        self.usage = re.search(r"muster .*", text).group()
        body = text[text.index(self.usage) + len(self.usage):]
        self.about, _, options = body.partition("\nOptions:")
        self.options = [option for option in re.findall(r"^  (--\S+) {2,}(.+)", options, re.M) if option[0] != "--help"]
        verbs = listed(self.about) if not self.options else []
        self.verbs = [Command(muster, [*words, verb], what) for verb, what in verbs]


def commands(muster):
    """The commands, in the order of the help; one with verbs has them in `verbs`."""
    return [Command(muster, [name], what) for name, what in listed(help_of(muster).partition("Commands:")[2].partition("\n\n")[0])]
