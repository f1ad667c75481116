# Makes a manual page from a command's help text, so that each fact is only in the command's source.
# Usage: verde COMMAND --help | awk -v command=COMMAND -v summary=TEXT -v version=V -v commands=LIST -f page.awk
# The help text has "Usage:", paragraphs, "  --option  what it does" with deeper continuation lines, "Example:" and "Exit codes:".
function escape(text) {
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    sub(/^\./, "\\\\\\&.", text)
    sub(/^'/, "\\\\\\&'", text)
    return text
}
function section(name) {
    if (part == "EXAMPLES" || part == "SYNOPSIS") print ".fi"
    part = name
    print ".SH " name
    if (name == "EXAMPLES" || name == "SYNOPSIS") print ".nf"
}
function rest(text) {
    sub(/^[^:]*: */, "", text)
    return text
}
BEGIN {
    title = command == "" ? "verde" : "verde-" command
    printf ".TH \"%s\" 1 \"\" \"verde %s\" \"Verde\"\n.SH NAME\n%s \\- %s\n", toupper(title), version, escape(title), escape(summary)
}
/^Usage: / { section("SYNOPSIS"); print escape(rest($0)); next }
part == "SYNOPSIS" && /^ +verde / { sub(/^ +/, ""); print escape($0); next }
/^Examples?:/ { section("EXAMPLES"); next }
/^verde: / { next }
/^Exit codes: / {
    section("EXIT STATUS")
    print escape(rest($0))
    next
}
part == "SYNOPSIS" && NF && command != "" { section("DESCRIPTION") }
part == "DESCRIPTION" && /^  -/ { section("OPTIONS") }
part == "SYNOPSIS" && /^  [a-z]/ { section("COMMANDS") }
part == "EXAMPLES" { if (NF) print escape(substr($0, 3)); next }
(part == "OPTIONS" || part == "COMMANDS") && /^  [-a-z]/ {
    line = substr($0, 3)
    at = match(line, /   *[^ ]/) # two spaces or more end the option's name
    name = at ? substr(line, 1, at - 1) : line
    sub(/ +$/, "", name)
    print ".TP\n\\fB" escape(name) "\\fR"
    line = at ? substr(line, at) : ""
    sub(/^ +/, "", line)
    if (at) print escape(line)
    next
}
(part == "OPTIONS" || part == "COMMANDS") && /^[^ ]/ { print ".PP" }
!NF { if (part == "DESCRIPTION") print ".PP"; next }
{ sub(/^ +/, ""); print escape($0) }
END {
    if (part == "EXAMPLES") print ".fi"
    print ".SH SEE ALSO"
    if (command != "") print ".BR verde (1)"
    for (n = split(command == "" ? commands : "", list, " "); ++i <= n;)
        print ".BR verde\\-" list[i] " (1)" (i < n ? "," : "")
}
