# SPDX-License-Identifier: Apache-2.0
# bash completion for muster(1): asks the command itself what it takes.
_muster() {
  local cur=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} words=()
  if ((COMP_CWORD == 1)); then
    words=($(muster --help 2>/dev/null | sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z]*\) .*/\1/p'))
  elif [[ $command == checkpoint && COMP_CWORD -eq 2 ]]; then
    words=($(muster checkpoint --help 2>/dev/null | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p'))
  elif [[ $cur == -* ]]; then
    [[ $command == checkpoint ]] && command="checkpoint ${COMP_WORDS[2]}"
    # shellcheck disable=SC2086
    words=($(muster $command --help 2>/dev/null | sed -n 's/^  \(-h, \)\?\(--[a-z-]*=\?\).*/\2/p'))
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    return
  fi
  mapfile -t COMPREPLY < <(compgen -W "${words[*]}" -- "$cur")
  [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace
}
complete -o filenames -F _muster muster
