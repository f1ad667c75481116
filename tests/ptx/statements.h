/* Splits PTX text into statements, and statements into parts. */
#ifndef TESTS_PTX_STATEMENTS_H
#define TESTS_PTX_STATEMENTS_H

#include <string>
#include <vector>

namespace ptx {

struct statement {
    char end = 0; /* ; { } : or 0 at the end of the text */
    std::string text;
    size_t from = 0;
    int line = 0;
};

class reader {
    const std::string &text;
    size_t at;
    int line;

    bool skip_blank();

  public:
    reader(const std::string &t, size_t from, int first_line)
        : text(t), at(from), line(first_line) {}
    size_t position() const {
        return at;
    }
    statement next();
};

bool starts_with(const std::string &text, const char *with);
/* Is it the header of a kernel? */
bool is_entry(const std::string &text);
/* Is it a directive that ends with its line? */
bool is_line(const std::string &text);
/* Splits at commas outside of braces and brackets, and drops blanks. */
std::vector<std::string> split(const std::string &text);
/* Returns the text without its first and last character. */
std::string inside(const std::string &text);
/* Returns the size in bytes of a type such as .b32. */
int size_of_type(const std::string &type);

} // namespace ptx

#endif
