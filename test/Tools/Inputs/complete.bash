# complete.bash FILE WORD...: prints what the functions of FILE complete the last word to.
source "$1"
COMP_WORDS=("${@:2}")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_tessera
printf '%s\n' "${COMPREPLY[@]}"
