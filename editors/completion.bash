# Completion of the command line of tessera, for bash and zsh:  source editors/completion.bash
#
# What there is comes from the program itself: subcommands and options from its help, kernels that ship from `tessera
# kernels`, parameters behind -D from `tessera params`.

if [ -n "${ZSH_VERSION:-}" ]; then
  autoload -U +X bashcompinit && bashcompinit
fi

_tessera_words() {
  local command=$1 previous=$2 source=$3
  case "$previous" in
  -D | --define) [ -z "$source" ] || tessera params --json "$source" 2>/dev/null |
    sed -n '/"parameters"/,$s/^ *"name": "\([A-Z0-9_]*\)",*$/\1=/p' ;;
  *)
    if [ -z "$command" ]; then
      tessera help | sed -n '/^Subcommands:/,/^$/s/^  \([a-z]*\) .*/\1/p'
    else
      tessera help "$command" | grep -oE '^  (-[A-Za-z],)?--[a-z-]+' | grep -oE -- '--[a-z-]+'
      [ -n "$source" ] || tessera kernels | sed -n 's/^\([a-z0-9_/]*\)  .*/\1/p'
    fi
    ;;
  esac
}

_tessera() {
  local current=${COMP_WORDS[COMP_CWORD]} command="" source="" index
  [ "$COMP_CWORD" = 1 ] || command=${COMP_WORDS[1]}
  # The first word that is neither an option nor the value of -D.
  for ((index = 2; index < COMP_CWORD; ++index)); do
    case "${COMP_WORDS[index]}" in
    -D | --define) ((++index)) ;;
    -*) ;;
    *) [ -n "$source" ] || source=${COMP_WORDS[index]} ;;
    esac
  done
  COMPREPLY=($(compgen -W "$(_tessera_words "$command" "${COMP_WORDS[COMP_CWORD - 1]}" "$source")" -- "$current"))
  [ -z "$command" ] || COMPREPLY+=($(compgen -f -X '!*.tile' -- "$current"))
}

complete -o nospace -o filenames -F _tessera tessera
