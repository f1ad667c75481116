/* Files of PTX: their kernels and constants. */
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "tests/ptx/ptx.h"
#include "tests/ptx/statements.h"

namespace ptx {

class module_parser {
    module &m;
    statement s;

    [[noreturn]] void refuse(const std::string &why) const {
        die("%s:%d: %s: %s", m.name.c_str(), s.line, why.c_str(), s.text.substr(0, 100).c_str());
    }

    /* .const .align 4 .b8 name[8] = {1, 2, 3, 4, 5, 6, 7, 8}; tables have .global
     */
    void add_constant(std::map<std::string, std::vector<uint32_t>> &to) {
        const size_t bracket = s.text.find('['), brace = s.text.find('{');
        if (brace == std::string::npos || s.text.find(".b8 ") == std::string::npos)
            refuse("a constant that is no list of bytes");
        const size_t blank = s.text.rfind(' ', bracket);
        std::vector<uint8_t> bytes;
        for (const std::string &byte : split(inside(s.text.substr(brace))))
            bytes.push_back((uint8_t)atoi(byte.c_str()));
        if (bytes.size() % 4 || (int)bytes.size() != atoi(s.text.c_str() + bracket + 1))
            refuse("a constant of another size than its list");
        std::vector<uint32_t> &words = to[s.text.substr(blank + 1, bracket - blank - 1)];
        words.resize(bytes.size() / 4);
        memcpy(words.data(), bytes.data(), bytes.size());
    }

    /* .extern .shared .align 16 .b8 name[] */
    void add_shared() {
        const size_t bracket = s.text.find("[]"), blank = s.text.rfind(' ', bracket);
        if (bracket == std::string::npos)
            refuse("shared memory that is not the launch's");
        m.shared = s.text.substr(blank + 1, bracket - blank - 1);
    }

    size_t add_kernel() {
        const size_t at = s.text.find(".entry ") + 7, end = s.text.find('(');
        kernel &k = m.kernels[s.text.substr(at, end - at)];
        k.name = s.text.substr(at, end - at);
        k.home = &m, k.text = s.from, k.line = s.line;
        const size_t close = m.text.find("\n}", s.from);
        if (close == std::string::npos)
            refuse("a kernel without an end");
        return close + 2;
    }

  public:
    explicit module_parser(module &to) : m(to) {}

    void parse() {
        size_t at = 0;
        int line = 1;
        for (;;) {
            reader in(m.text, at, line);
            s = in.next();
            if (s.text.empty() && !s.end)
                return;
            size_t next = in.position();
            if (s.end == '{' && is_entry(s.text))
                next = add_kernel();
            else if (starts_with(s.text, ".const"))
                add_constant(m.constants);
            else if (starts_with(s.text, ".global"))
                add_constant(m.tables);
            else if (starts_with(s.text, ".extern .shared"))
                add_shared();
            else if (!is_line(s.text))
                refuse("a directive that is not understood");
            line += (int)std::count(m.text.begin() + at, m.text.begin() + next, '\n');
            at = next;
        }
    }
};

std::unique_ptr<module> load_module(const std::string &file) {
    std::unique_ptr<module> m = std::make_unique<module>();
    std::ifstream in(file);
    std::ostringstream text;
    text << in.rdbuf();
    if (!in || text.str().empty())
        die("%s: cannot be read", file.c_str());
    m->name = file.substr(file.rfind('/') + 1);
    m->text = text.str();
    module_parser(*m).parse();
    return m;
}

} // namespace ptx
