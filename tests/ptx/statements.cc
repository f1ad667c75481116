#include "tests/ptx/statements.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>

namespace ptx {

bool starts_with(const std::string &text, const char *with) {
    return text.compare(0, strlen(with), with) == 0;
}

bool is_entry(const std::string &text) {
    return starts_with(text, ".visible .entry") || starts_with(text, ".entry");
}

bool is_line(const std::string &text) {
    return starts_with(text, ".version") || starts_with(text, ".target") ||
           starts_with(text, ".address_size");
}

bool reader::skip_blank() {
    if (text[at] == '\n')
        line++;
    else if (text.compare(at, 2, "//") == 0)
        return at = std::min(text.find('\n', at), text.size()), true;
    else if (!isspace((unsigned char)text[at]))
        return false;
    return at++, true;
}

/* Does a character end a statement? Braces also delimit vectors. */
static bool ends(char c, const std::string &text, int open) {
    switch (c) {
    case ';': return true;
    case '{': return text.empty() || is_entry(text);
    case '}': return open == 0;
    case ':': return text.empty() || text[0] == '$';
    default: return false;
    }
}

statement reader::next() {
    statement s;
    int open = 0;
    while (at < text.size()) {
        const bool new_line = text[at] == '\n';
        if (skip_blank()) {
            if (new_line && is_line(s.text))
                return s;
            if (!s.text.empty() && s.text.back() != ' ')
                s.text += ' ';
            continue;
        }
        if (s.text.empty())
            s.line = line, s.from = at;
        const char c = text[at++];
        if (ends(c, s.text, open)) {
            s.end = c;
            return s;
        }
        open += (c == '{') - (c == '}');
        s.text += c;
    }
    return s;
}

std::vector<std::string> split(const std::string &text) {
    std::vector<std::string> parts(1);
    int open = 0;
    for (const char c : text) {
        open += (c == '{' || c == '[') - (c == '}' || c == ']');
        if (c == ',' && open == 0)
            parts.emplace_back();
        else if (c != ' ')
            parts.back() += c;
    }
    return parts.size() == 1 && parts[0].empty() ? std::vector<std::string>() : parts;
}

std::string inside(const std::string &text) {
    return text.size() < 2 ? "" : text.substr(1, text.size() - 2);
}

int size_of_type(const std::string &type) {
    return atoi(type.c_str() + type.find_first_of("0123456789")) / 8;
}

} // namespace ptx
