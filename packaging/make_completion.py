#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""make_completion.py MUSTER bash|zsh|fish: the completion of the command for a shell, to stdout.

Commands, options and what they say of themselves come from --help; what a value may be, from its name there: FILE, DIR,
TARGET, or the words to choose from, as in STEPS|auto.
"""
import collections
import re
import sys

import options

HEADER = """# SPDX-License-Identifier: Apache-2.0
# Completion for muster(1), made from its options.
"""
# A value that may be these; the last ones go on.
SERVED = ["grpc://", "grpcs://", "unix:/"]
TARGETS = ["local", "tensorflow", *SERVED]

Value = collections.namedtuple("Value", ["kind", "words"])
FILES, FOLDERS, WORDS, PLACES, ANY = "files", "folders", "words", "places", "any"


def value_of(name):
    """What completes a value of this name."""
    if re.match(r"TARGET\|DIR\b", name):
        return Value(PLACES, SERVED)
    if re.match(r"TARGET\b", name):
        return Value(WORDS, TARGETS)
    if re.match(r"(FILE|PREFIX|A)\b", name):
        return Value(FILES, [])
    if re.match(r"DIR\b", name):
        return Value(FOLDERS, [])
    places = name.split("|")
    words = [word for word in places if re.fullmatch(r"[a-z][a-z-]*", word)]
    alone = all(re.fullmatch(r"[a-z][a-z-]*|[A-Z]+", place) for place in places)
    return Value(WORDS, words) if words and alone else Value(ANY, [])


def operand_of(command):
    """The same for what a command takes beside its options."""
    return value_of(command.usage.partition("[OPTION…] ")[2])


def leaves(commands):
    return [leaf for command in commands for leaf in command.verbs or [command]]


Option = collections.namedtuple("Option", ["name", "value", "optional", "text"])


def option_of(option):
    """An option's name, what its value is called (empty: it has none), whether it may be left out, and what the option does."""
    name, _, value = option[0].partition("=")
    return Option(name.rstrip("["), value.rstrip("]"), name.endswith("["), option[1])


def options_of(command):
    return map(option_of, command.options)


def short(text):
    """What fits beside a name: without its default and its further sentences."""
    return re.split(r" \([^()]*(?:default|required)|; |\. ", text)[0]


def values_of(commands):
    """What is completed in the same way, as "COMMAND OPTION"; a command's operand is "COMMAND "."""
    grouped = collections.defaultdict(list)
    for command in leaves(commands):
        values = [(option.name, value_of(option.value)) for option in options_of(command) if option.value]
        for name, value in [*values, ("", operand_of(command))]:
            if value.kind != ANY:
                grouped[value.kind, " ".join(value.words)].append("%s %s" % (command.name, name))
    return grouped


BASH = r"""
_muster_options() { # _muster_options COMMAND
  case $1 in
@options@
  esac
}

_muster_value() { # _muster_value COMMAND OPTION: completes its value, or without OPTION the command's operand
  case "$1 $2" in
@values@
  esac
}

_muster_reply() { # _muster_reply WHAT…: what compgen finds
  mapfile -t COMPREPLY < <(compgen "$@" -- "$cur")
  [[ ${COMPREPLY[0]-} == *[=/] ]] && compopt -o nospace
}

_muster() {
  local cur=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} at=1 command verbs=''
  COMPREPLY=()
  [[ $COMP_CWORD -gt 1 && ${COMP_WORDS[1]} == help ]] && at=2
  command=${COMP_WORDS[at]}
  case $command in
@verbs@
  esac
  if ((COMP_CWORD == at)); then
    _muster_reply -W '@commands@'
    return
  elif [[ $verbs ]] && ((COMP_CWORD == at + 1)); then
    _muster_reply -W "$verbs"
    return
  fi
  [[ $verbs ]] && command+=" ${COMP_WORDS[at + 1]}"

  # bash takes --option=value for three words.
  if [[ $cur == = ]]; then
    cur=
    _muster_value "$command" "$before"
  elif [[ $before == = ]]; then
    _muster_value "$command" "${COMP_WORDS[COMP_CWORD - 2]}"
  elif [[ $cur == -* ]]; then
    _muster_reply -W "$(_muster_options "$command")"
  else
    _muster_value "$command" ''
  fi
}
complete -F _muster muster
"""
BASH_ACTIONS = {FILES: "compopt -o filenames; _muster_reply -f", FOLDERS: "compopt -o filenames; _muster_reply -d",
                PLACES: "_muster_reply -W '%s'; ((${#COMPREPLY[@]})) || { compopt -o filenames; _muster_reply -d; }" % " ".join(SERVED)}


def bash(commands):
    names = {command.name: [option.name + "=" * (option.value != "" and not option.optional) for option in options_of(command)]
             for command in leaves(commands)}
    return fill_in(BASH, {
        "options": ["    '%s') echo '%s --help' ;;" % (name, " ".join(each)) for name, each in names.items()],
        "values": ["    %s) %s ;;" % (" | ".join(map("'{}'".format, which)), BASH_ACTIONS.get(kind, "_muster_reply -W '%s'" % words))
                   for (kind, words), which in values_of(commands).items()],
        "verbs": ["    %s) verbs='%s' ;;" % (command.name, " ".join(verb.words[-1] for verb in command.verbs))
                  for command in commands if command.verbs],
        "commands": [" ".join([*(command.name for command in commands), "help"])]})


ZSH = r"""
_muster_targets() {
  compadd local tensorflow
  compadd -S '' grpc:// grpcs:// unix:/
}

_muster_places() {
  compadd -S '' grpc:// grpcs:// unix:/
  _files -/
}

_muster_commands() {
  local -a commands=(
@commands@
  )
  _describe command commands
}

_muster_command() { # the words that come after muster, or after help
  local curcontext=$curcontext state
  local -a line
  _arguments -C '1: :_muster_commands' '*:: :->rest' && return
  case $words[1] in
@cases@
  esac
}

_muster() {
  if [[ $words[2] == help && CURRENT -gt 2 ]]; then
    shift words
    ((CURRENT--))
  fi
  _muster_command
}

_muster "$@"
"""
ZSH_ACTIONS = {FILES: "_files", FOLDERS: "_files -/", PLACES: "_muster_places", ANY: " "}


def zsh_text(text, special):
    return re.sub(r"([%s\\])" % re.escape(special), r"\\\1", text).replace("'", "'\\''")


def zsh_action(value):
    if value.words == TARGETS:
        return "_muster_targets"
    return ZSH_ACTIONS.get(value.kind, "(%s)" % " ".join(value.words))


def zsh_arguments(command):
    for name, value, optional, text in options_of(command):
        takes = value != "" and not optional
        again = "*" if "repeat" in text or "=" in value else ""
        rest = ":%s:%s" % (zsh_text(value, ":"), zsh_action(value_of(value)))
        yield "'%s%s%s[%s]%s'" % (again, name, "=-" * takes, zsh_text(short(text), "[]:"), rest * takes)
    yield "'--help[show the options]'"
    if operand_of(command).kind != ANY:
        yield "'*: :%s'" % zsh_action(operand_of(command))


def zsh_described(command, indent):
    return "%s'%s:%s'" % (indent, command.words[-1], zsh_text(command.what, ":"))


def zsh_case(command, indent="    "):
    yield "%s%s)" % (indent, command.words[-1])
    if command.verbs:
        yield indent + "  local -a verbs=("
        yield from (zsh_described(verb, indent + "    ") for verb in command.verbs)
        yield indent + "  )"
        yield indent + "  _arguments -C '1: :{_describe verb verbs}' '*:: :->rest' && return"
        yield indent + "  case $words[1] in"
        for verb in command.verbs:
            yield from zsh_case(verb, indent + "    ")
        yield indent + "  esac"
    else:
        yield indent + "  _arguments \\\n" + " \\\n".join(indent + "    " + argument for argument in zsh_arguments(command))
    yield indent + "  ;;"


def zsh(commands):
    return "#compdef muster\n" + fill_in(ZSH, {
        "commands": [*(zsh_described(command, "    ") for command in commands), "    'help:show the help of a command'"],
        "cases": [line for command in commands for line in zsh_case(command)]})


FISH = r"""
function __muster_is # __muster_is WORD…: these are the first words after muster, or after help
    set -l words (commandline -opc)[2..-1]
    test "$words[1]" = help; and set -e words[1]
    test (count $words) -ge (count $argv); or return
    test "$words[1..$(count $argv)]" = "$argv"
end

function __muster_lacks # __muster_lacks WORD…: these are all the words
    set -l words (commandline -opc)[2..-1]
    test "$words[1]" = help; and set -e words[1]
    test "$words" = "$argv"
end

complete -c muster -f
complete -c muster -n '__muster_lacks' -a help -d 'show the help of a command'
@lines@
"""
FISH_ACTIONS = {FILES: "-r -F", FOLDERS: "-x -a '(__fish_complete_directories)'",
                PLACES: "-x -a '%s (__fish_complete_directories)'" % " ".join(SERVED), ANY: "-x"}


def fish_text(text):
    return "'%s'" % re.sub(r"(['\\])", r"\\\1", text)


def fish_lines(command):
    asked = " ".join(["__muster_lacks", *command.words[:-1]])
    yield "complete -c muster -n '%s' -a %s -d %s" % (asked, command.words[-1], fish_text(command.what))
    for verb in command.verbs:
        yield from fish_lines(verb)
    begin = "complete -c muster -n '__muster_is %s'" % command.name
    for name, value, optional, text in options_of(command):
        kind = value_of(value)
        takes = FISH_ACTIONS.get(kind.kind, "-x -a '%s'" % " ".join(kind.words)) if value and not optional else ""
        yield "%s -l %s %s -d %s" % (begin, name[2:], takes, fish_text(short(text)))
    operand = operand_of(command)
    if operand.kind != ANY and command.options:
        yield "%s %s" % (begin, FISH_ACTIONS.get(operand.kind, "-a '%s'" % " ".join(operand.words)).replace("-r ", "").replace("-x ", ""))


def fish(commands):
    return fill_in(FISH, {"lines": [line for command in commands for line in fish_lines(command)]})


def fill_in(frame, parts):
    for name, lines in parts.items():
        frame = frame.replace("@%s@" % name, "\n".join(lines))
    return frame


def main():
    muster, shell = sys.argv[1:]
    script = {"bash": bash, "zsh": zsh, "fish": fish}[shell](options.commands(muster))
    first, _, rest = script.partition("\n")
    sys.stdout.write("%s\n%s%s" % (first, HEADER, rest) if first else HEADER + "\n" + rest)


main()
