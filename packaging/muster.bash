# SPDX-License-Identifier: Apache-2.0
# bash completion for muster(1): asks the command itself what it takes.
_muster() {
  local cur=${COMP_WORDS[COMP_CWORD]} words=() at=1
  [[ $COMP_CWORD -gt 1 && ${COMP_WORDS[1]} == help ]] && at=2
  local command=${COMP_WORDS[at]}
  if ((COMP_CWORD == at)); then
    words=($(muster --help 2>/dev/null | sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z]*\) .*/\1/p'))
  elif [[ $command == checkpoint && COMP_CWORD -eq $((at + 1)) ]]; then
    words=($(muster checkpoint --help 2>/dev/null | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p'))
  elif [[ $cur == -* ]]; then
    [[ $command == checkpoint ]] && command="checkpoint ${COMP_WORDS[at + 1]}"
    # shellcheck disable=SC2086
    words=($(muster $command --help 2>/dev/null | sed -n 's/^  \(--[a-z-]*=\?\).*/\1/p'))
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$cur")
    return
  fi
  mapfile -t COMPREPLY < <(compgen -W "${words[*]}" -- "$cur")
  [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace
}
complete -o filenames -F _muster muster
