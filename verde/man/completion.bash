# Completion for bash: commands and options as listed by `verde --help` and `verde COMMAND --help`.
_verde() {
    local word=${COMP_WORDS[COMP_CWORD]} verde=${COMP_WORDS[0]} command=${COMP_WORDS[1]-}
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "$("$verde" --help 2> /dev/null | sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p') --help --version" -- "$word")
    elif [ "${word#-}" != "$word" ]; then
        mapfile -t COMPREPLY < <(compgen -W "$("$verde" "$command" --help 2> /dev/null | sed -n 's/^  \(--[a-z-]*\).*/\1/p')" -- "$word")
    fi
}
complete -o default -F _verde verde
