# Manual pages of section 3, made of the comments of hourglass.h: a page for each of its headings, one for what stands
# before them, and for each function an alias to its page.
#
# Usage: awk -v folder=DIR -v version=VERSION -f manual.awk hourglass.h
#
# install.sh calls it: awk is wherever sh is, also where neither cargo nor the command is. Names that end with _ are the
# header's own and are left out. A heading without a page, and a function without a comment, are errors.

BEGIN {
    page("Errors", "hourglass-errors", "statuses, errors and versions")
    page("The clock", "hourglass-clock", "the time with a bound on its error")
    page("A clock in shared memory", "hourglass-page", "the clock of another process, read in shared memory")
    page("Sleeping", "hourglass-sleep", "precise sleep that can be interrupted")
    page("Clock devices", "hourglass-device", "devices that tick, and timers on them")
    page("Scheduling", "hourglass-scheduling", "policies and priorities of threads")
    page("Timing faults", "hourglass-watch", "deadlines of the calling thread, and handlers of those that it misses")
    page("Timers", "hourglass-timer", "timers that any thread may arm")
    page("Periodic threads", "hourglass-periodic", "threads that are released at absolute times")
    page("The recorder, for a loop of one's own", "hourglass-loop", "the run of one's own loop, recorded")
    page("Reservations", "hourglass-reserve", "processor time that the kernel reserves for a thread")
    page("Progress", "hourglass-progress", "how far reserved work is")
    page("What the scheduler did to a span", "hourglass-witness", "whether the scheduler took the thread away in between")
    own = "hourglass"
    about[own] = "time and real-time scheduling on Linux, for C and C++"
    pages = 0
    order[pages++] = own
}

function describe() {
    if (comment != "") description[own] = description[own] prose(comment)
    comment = ""
}

failed { next }
item != "" { collect(); next }
in_comment { comment_line($0); next }
/^\/\* ---- / {
    heading = $0
    sub(/^\/\* ---- /, "", heading)
    sub(/ -+ \*\/$/, "", heading)
    if (!(heading in page_of)) fail("no page for the heading " heading)
    own = page_of[heading]
    order[pages++] = own
    comment = ""
    next
}
/^\/\*/ { comment = ""; in_comment = 1; comment_line($0); next }
/^$/ {
    # A comment that nothing follows is about the page.
    describe()
    after = beside = 0
    next
}
/^#ifndef/ { describe() }
/^#define HG_[A-Z0-9_]*[A-Z0-9][ (]/ { declare($0) }
/^#/ { comment = ""; next }
/^extern "C"/ || /^[}]/ { next }
{ collect() }

END {
    if (failed) exit 1
    for (at = 0; at < pages; at++) write(order[at])
}

function page(heading, name, what) { page_of[heading] = name; about[name] = what }

function fail(what) {
    print "manual.awk: " FILENAME ":" FNR ": " what | "cat >&2"
    failed = 1
}

# Adds a line of a comment, without its marks.
function comment_line(line,    last) {
    last = line ~ /\*\/$/
    sub(/^\/\*/, " *", line)
    sub(/ *\*\/$/, "", line)
    sub(/^ \* ?/, "", line)
    comment = comment line "\n"
    if (last) in_comment = 0
}

# Adds a line of code, until a declaration is whole.
function collect(    code, opened, closed) {
    item = item $0 "\n"
    code = $0
    gsub(/\/\*.*\*\//, "", code)
    sub(/ +$/, "", code)
    opened = gsub(/[{]/, "{", code)
    closed = gsub(/[}]/, "}", code)
    depth += opened - closed
    if (depth == 0 && (code ~ /;$/ || code ~ /[}]$/)) {
        if (item ~ /^(typedef|enum|struct|extern)/) declare(item)
        else if (item !~ /^static __thread/) prototype(item)
        item = ""
        comment = ""
    }
}

# A type, a number or a macro.
function declare(text) {
    if (text ~ /^struct [a-z_]+_ / || text ~ /^enum [{]\n? *HG_[A-Z0-9_]+_ =/) return
    if (comment != "") types[own] = types[own] prose(comment)
    else if (beside) sub(/\n\.EE\n$/, "\n", types[own])
    if (comment == "" && beside) types[own] = types[own] verbatim(text)
    else types[own] = types[own] code_of(text)
    beside = 1
}

# A function, also one that the header defines.
function prototype(text,    name, inline) {
    inline = sub(/^static inline /, "", text)
    sub(/\).*/, ");", text)
    if (!match(text, /hg_[a-z0-9_]+\(/)) { fail("not understood: " text); return }
    name = substr(text, RSTART, RLENGTH - 1)
    if (name ~ /_$/) return
    if (inline) gsub(/\n              /, "\n", text)
    if (comment == "" && !after) { fail(name " has no comment"); return }
    if (comment != "") {
        close_group()
        group_text[own] = prose(comment)
        group_names[own] = name "()"
    } else {
        group_names[own] = group_names[own] ", " name "()"
    }
    after = 1
    synopsis[own] = synopsis[own] (comment != "" && synopsis[own] != "" ? "\n" : "") text "\n"
    functions[own] = functions[own] (functions[own] == "" ? "" : " ") name
}

function close_group() {
    if (group_names[own] != "") groups[own] = groups[own] ".SS " group_names[own] "\n" group_text[own]
    group_names[own] = ""
}

# A comment as paragraphs; what is indented in it is code, or words with their meaning.
function prose(text,    lines, count, at, line, out, paragraph) {
    count = split(text, lines, "\n")
    for (at = 1; at <= count; at++) {
        line = lines[at]
        if (line ~ /^ *$/ || line ~ /^  /) {
            out = out filled(paragraph)
            paragraph = ""
            if (line ~ /^ *$/) continue
            if (line ~ /^  [^ ].........  *[^ ]/ && substr(line, 13, 1) == " ") {
                out = out ".TP\n.B " escaped(trimmed(substr(line, 3, 11))) "\n"
                paragraph = substr(line, 14)
                while (lines[at + 1] ~ /^             /) paragraph = paragraph " " trimmed(lines[++at])
                out = out words(paragraph) "\n"
            } else {
                line = line "\n"
                while (lines[at + 1] ~ /^  /) line = line lines[++at] "\n"
                out = out code_of(line)
            }
            paragraph = ""
        } else {
            paragraph = paragraph (paragraph == "" ? "" : " ") line
        }
    }
    return out filled(paragraph)
}

function trimmed(text) { sub(/^ +/, "", text); sub(/ +$/, "", text); return text }

# A paragraph, with what each function says on lines of their own.
function filled(text,    mark, parts, at, lead) {
    if (text == "") return ""
    split("Threads Signals Errors Free", parts, " ")
    for (at = 1; at in parts; at++) {
        mark = parts[at] ": "
        lead = at == 1 ? "\n.PP\n" : "\n.br\n"
        if (index(" " text, " " mark)) sub("(^| )" mark, lead "\001" parts[at] ":\002 ", text)
    }
    sub(/^\n\.PP\n/, "", text)
    return ".PP\n" words(text) "\n"
}

# Text of a paragraph: names of functions are bold, what stands in backticks is italic.
function words(text) {
    gsub(/\\/, "\\e", text)
    gsub(/--/, "\\-\\-", text)
    while (match(text, /`[^`]*`/)) {
        text = substr(text, 1, RSTART - 1) "\\fI" substr(text, RSTART + 1, RLENGTH - 2) "\\fR" substr(text, RSTART + RLENGTH)
    }
    gsub(/HG_[A-Z0-9]/, "\\%&", text)
    gsub(/hg_[a-z0-9_]*[a-z0-9]/, "\001\\%&\002", text)
    gsub(/\001/, "\\fB", text)
    gsub(/\002/, "\\fR", text)
    sub(/^['.]/, "\\\\\\&&", text)
    return text
}

function escaped(text) {
    gsub(/\\/, "\\e", text)
    gsub(/-/, "\\-", text)
    gsub(/'/, "\\(aq", text)
    gsub(/`/, "\\(ga", text)
    return text
}

function code_of(text) { return ".PP\n.EX\n" verbatim(text) }

function verbatim(text) {
    sub(/\n$/, "", text)
    return escaped(text) "\n.EE\n"
}

function write(name,    file, list, count, at, upper) {
    own = name
    close_group()
    file = folder "/" name ".3"
    upper = toupper(name)
    print ".\\\" Made from hourglass.h by manual.awk." >file
    print ".TH " escaped(upper) " 3 \"\" \"Hourglass " version "\" \"C interface of Hourglass\"\n.ad l" >file
    count = split(functions[name], list, " ")
    print ".SH NAME" >file
    printf "\\%%%s", escaped(name) >file
    for (at = 1; at <= count; at++) printf ", \\%%%s", list[at] >file
    print " \\- " about[name] >file
    print ".SH SYNOPSIS\n.EX\n#include <hourglass.h>\n" >file
    if (count) printf "%s", escaped(synopsis[name]) >file
    print ".EE\n.PP\nCompile and link with\n.IR \"$(pkg\\-config \\-\\-cflags \\-\\-libs hourglass)\" ." >file
    if (description[name] != "") printf ".SH DESCRIPTION\n%s", description[name] >file
    if (groups[name] != "") printf ".SH FUNCTIONS\n%s", groups[name] >file
    if (types[name] != "") printf ".SH TYPES AND CONSTANTS\n%s", types[name] >file
    print ".SH SEE ALSO" >file
    for (at = 0; at < pages; at++) {
        if (order[at] != name) print ".BR \\%" escaped(order[at]) " (3)" (at < pages - 1 - (order[pages - 1] == name) ? "," : "") >file
    }
    close(file)
    for (at = 1; at <= count; at++) {
        file = folder "/" list[at] ".3"
        print ".so man3/" name ".3" >file
        close(file)
    }
}
