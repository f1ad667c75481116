/* Parses kernels in PTX as nvcc writes it. Anything unknown ends the program with file, line and
 * text: if a directive or operand were skipped, another kernel would be tested. */
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <sstream>

#include "tests/ptx/asynchronous.h"
#include "tests/ptx/statements.h"

namespace ptx {

struct declared {
    int at;
    width of;
};

class parser {
    const module &home;
    kernel &k;
    reader in;
    int line = 0;
    std::string said; /* the current statement */
    struct scope {
        std::map<std::string, width> names;           /* %r1, or %r of %r<100> */
        std::unordered_map<std::string, declared> at; /* names used so far */
    };
    std::vector<scope> scopes;
    std::map<std::pair<width, uint64_t>, int> numbers;
    std::map<std::string, uint64_t> symbols;
    std::map<std::string, int> labels;
    std::vector<std::pair<size_t, std::string>> branches;
    std::vector<instruction> after; /* instructions to add after the current one */
    std::vector<int> used;          /* of the current instruction: see register_used */

    [[noreturn]] void refuse(const std::string &why) const {
        die("%s:%d: %s: %s", home.name.c_str(), line, why.c_str(), said.c_str());
    }

    /* ---- registers, numbers and names ---- */

    int allocate(width of) {
        int &next = of == width::PREDICATE ? k.predicates : k.words;
        const int at = next;
        next += of == width::PREDICATE ? 1 : of == width::WORD ? LANES : 2 * LANES;
        return at;
    }

    declared register_at(const std::string &name) {
        const std::string prefix = name.substr(0, name.find_last_not_of("0123456789") + 1);
        for (auto s = scopes.rbegin(); s != scopes.rend(); ++s) {
            const auto used = s->at.find(name);
            if (used != s->at.end())
                return used->second;
            auto declaration = s->names.find(name);
            if (declaration == s->names.end())
                declaration = s->names.find(prefix + "<");
            if (declaration != s->names.end())
                return s->at[name] = {allocate(declaration->second), declaration->second};
        }
        refuse("no register " + name);
    }

    uint64_t number(const std::string &text) const {
        const auto symbol = symbols.find(text);
        if (symbol != symbols.end())
            return symbol->second;
        char *end = nullptr;
        uint64_t value;
        if (starts_with(text, "0f") || starts_with(text, "0F") || starts_with(text, "0d") ||
            starts_with(text, "0D"))
            value = strtoull(text.c_str() + 2, &end, 16);
        else if (text[0] == '-')
            value = (uint64_t)strtoll(text.c_str(), &end, 0);
        else
            value = strtoull(text.c_str(), &end, 0);
        if (text.empty() || (*end && strcmp(end, "U") != 0))
            refuse("an operand that is not understood, " + text);
        return value;
    }

    /* A number becomes a register that has this value in all lanes from the start. */
    int number_register(width of, uint64_t value) {
        const auto [place, is_new] = numbers.insert({{of, value}, 0});
        if (!is_new)
            return place->second;
        const int at = place->second = allocate(of);
        for (int l = 0; l < LANES; l++) {
            if (of == width::WORD)
                k.constants.push_back({at + l, (uint32_t)value});
            else
                k.constants.push_back({at + 2 * l, (uint32_t)value}),
                    k.constants.push_back({at + 2 * l + 1, (uint32_t)(value >> 32)});
        }
        return at;
    }

    static int special(const std::string &name) {
        static const char *const names[] = {"%tid.x",   "%tid.y",    "%tid.z",    "%ntid.x",
                                            "%ntid.y",  "%ntid.z",   "%ctaid.x",  "%ctaid.y",
                                            "%ctaid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z"};
        for (int s = 0; s < 12; s++)
            if (name == names[s])
                return s;
        return NONE;
    }

    void use(declared d, bool writes) {
        for (int half = 0; d.of != width::PREDICATE && half <= (d.of == width::DOUBLE); half++)
            used.push_back(register_used(d.at + half * LANES, writes));
    }

    int operand(const std::string &text, width of) {
        if (special(text) != NONE) {
            if (of != width::WORD)
                refuse("a special register of another width, " + text);
            int &at = k.special[special(text)]; /* filled in by a launch */
            return at != NONE ? at : at = allocate(width::WORD);
        }
        if (text[0] == '%') {
            const declared d = register_at(text);
            if (d.of != of)
                refuse("a register of another width, " + text);
            use(d, false);
            return d.at;
        }
        if (of == width::PREDICATE)
            return number(text) ? PREDICATE_TRUE : PREDICATE_FALSE;
        return number_register(of, number(text));
    }

    int result(const std::string &text, width of) {
        if (text[0] != '%' || special(text) != NONE)
            refuse("a result that is no register, " + text);
        use(register_at(text), true);
        return operand(text, of);
    }

    address place(const std::string &text) {
        address a;
        if (text.size() < 3 || text[0] != '[' || text.back() != ']')
            refuse("no address, " + text);
        const std::string all = inside(text);
        const size_t plus = all.find('+');
        const std::string base = all.substr(0, plus);
        if (plus != std::string::npos)
            a.offset = (uint64_t)strtoll(all.c_str() + plus + 1, nullptr, 0);
        if (base[0] == '%') {
            const declared d = register_at(base);
            use(d, false);
            a.base = d.at, a.of = d.of;
        } else {
            a.offset += number(base);
        }
        return a;
    }

    /* ---- instructions ---- */

    void expect(bool holds) const {
        if (!holds)
            refuse("other operands than are understood");
    }

    int predicate(instruction &i, std::string text) {
        i.source_negated = text[0] == '!';
        return operand(i.source_negated ? text.substr(1) : text, width::PREDICATE);
    }

    /* Conversions, loads and stores may name registers wider than their type: an extra instruction
     * takes the lower half, or extends the result. */
    bool is_wider(const std::string &text, width of) {
        return of == width::WORD && text[0] == '%' && special(text) == NONE &&
               register_at(text).of == width::DOUBLE;
    }

    int lower_half(instruction i, const std::string &text) {
        i.run = find_operation("cvt.u32.u64")->run;
        i.operand[0] = allocate(width::WORD);
        i.operand[1] = register_at(text).at;
        use(register_at(text), false);
        k.code.push_back(i);
        return i.operand[0];
    }

    int extended(instruction i, const std::string &text) {
        const bool has_sign = said.find(".s8 ") != said.npos || said.find(".s32 ") != said.npos;
        i.run = find_operation(has_sign ? "cvt.s64.s32" : "cvt.u64.u32")->run;
        i.operand[0] = register_at(text).at;
        i.operand[1] = allocate(width::WORD);
        use(register_at(text), true);
        after.push_back(i);
        return i.operand[1];
    }

    /* Parses a, or {a, b}. */
    void list(instruction &i, const operation &o, const std::string &text, bool results) {
        const std::vector<std::string> names =
            text[0] == '{' ? split(inside(text)) : std::vector<std::string>{text};
        expect((int)names.size() == o.count);
        for (int n = 0; n < o.count; n++)
            if (is_wider(names[n], o.of[n]))
                i.operand[n] = results ? extended(i, names[n]) : lower_half(i, names[n]);
            else
                i.operand[n] = results ? result(names[n], o.of[n]) : operand(names[n], o.of[n]);
    }

    void values(instruction &i, const operation &o, const std::vector<std::string> &a) {
        expect((int)a.size() == o.count);
        i.operand[0] = result(a[0], o.of[0]);
        for (int n = 1; n < o.count; n++)
            if (starts_with(o.mnemonic, "cvt.") && is_wider(a[n], o.of[n]))
                i.operand[n] = lower_half(i, a[n]);
            else
                i.operand[n] = operand(a[n], o.of[n]);
    }

    void pack(instruction &i, const operation &o, const std::vector<std::string> &a) {
        expect(a.size() == 2);
        if (a[0][0] != '{' && a[1][0] != '{')
            return values(i, o, a);
        const bool packs = a[1][0] == '{';
        const std::vector<std::string> halves = split(inside(a[packs]));
        expect(halves.size() == 2 && o.pack);
        i.run = packs ? o.pack : o.unpack;
        i.operand[0] = packs ? result(a[0], o.of[0]) : operand(a[1], o.of[0]);
        for (int n = 0; n < 2; n++)
            i.operand[1 + n] =
                packs ? operand(halves[n], width::WORD) : result(halves[n], width::WORD);
    }

    void exchange(instruction &i, const std::vector<std::string> &a) {
        expect(a.size() == 5);
        const size_t bar = a[0].find('|');
        i.operand[0] = result(a[0].substr(0, bar), width::WORD);
        for (int n = 1; n < 5; n++)
            i.operand[n] = operand(a[n], width::WORD);
        i.operand[5] =
            bar == std::string::npos ? NONE : result(a[0].substr(bar + 1), width::PREDICATE);
    }

    /* Operands: results; the lanes that take part, which are all; factors; the addend. */
    void matrix(instruction &i, const operation &o, const std::vector<std::string> &a) {
        const size_t factors = (size_t)o.count + (size_t)o.count / 2;
        int next = 5;
        expect(a.size() == 4);
        const std::vector<std::string> d = split(inside(a[0])), x = split(inside(a[1])),
                                       y = split(inside(a[2])), c = split(inside(a[3]));
        expect((int)d.size() == o.count && c.size() == d.size());
        expect(x.size() + y.size() == (d.size() == 2 ? 2 : factors));
        i.operand[4] = operand("-1", width::WORD);
        for (const std::vector<std::string> *list : {&x, &y, &c})
            for (const std::string &name : *list)
                i.operand[next++] = operand(name, width::WORD);
        for (int n = 0; n < o.count; n++)
            i.operand[n] = result(d[(size_t)n], width::WORD);
    }

    void product(instruction &i, const operation &o, const std::vector<std::string> &a) {
        product_operands p;
        expect(a.size() == 4);
        p.columns = o.count;
        for (const std::string &name : split(inside(a[0])))
            p.d.push_back(result(name, width::WORD));
        expect((int)p.d.size() == o.count / 2);
        if (a[1][0] == '{') {
            const std::vector<std::string> names = split(inside(a[1]));
            expect(names.size() == 4);
            for (int n = 0; n < 4; n++)
                p.a[n] = operand(names[(size_t)n], width::WORD);
        } else {
            p.of_a = operand(a[1], width::DOUBLE);
        }
        p.of_b = operand(a[2], width::DOUBLE);
        p.adds = operand(a[3], width::PREDICATE);
        i.count = (int)k.products.size();
        k.products.push_back(p);
        used.clear(); /* wgmma tracks its registers itself */
    }

    /* Does a mnemonic need asynchronous.h? */
    static bool is_asynchronous(const std::string &mnemonic) {
        for (const char *of : {"mbarrier.", "wgmma.", "cp.async.bulk.", "setmaxnreg."})
            if (starts_with(mnemonic, of))
                return true;
        return false;
    }

    void operands(instruction &i, const operation &o, const std::vector<std::string> &a) {
        switch (o.shape) {
        case form::VALUES: return values(i, o, a);
        case form::PACK: return pack(i, o, a);
        case form::EXCHANGE: return exchange(i, a);
        case form::MATRIX: return matrix(i, o, a);
        case form::LOAD:
            expect(a.size() == 2);
            i.at = place(a[1]);
            return list(i, o, a[0], true);
        case form::STORE:
            expect(a.size() == 2);
            i.at = place(a[0]);
            return list(i, o, a[1], false);
        case form::ATOMIC:
            expect(a.size() == 3);
            i.operand[0] = result(a[0], o.of[0]);
            i.at = place(a[1]);
            i.operand[1] = operand(a[2], o.of[0]);
            return;
        case form::COPY:
            expect(a.size() == 4);
            i.at = place(a[0]), i.from = place(a[1]);
            i.count = (int)number(a[2]);
            expect(i.count == 4 || i.count == 8 || i.count == 16);
            i.operand[0] = operand(a[3], width::WORD);
            return;
        case form::GROUPS:
            expect((int)a.size() == o.count);
            i.count = a.empty() ? 0 : (int)number(a[0]);
            return;
        case form::TARGET:
            expect(a.size() == 1);
            branches.push_back({k.code.size(), a[0]});
            return;
        case form::VOTE:
            expect(a.size() == 3);
            i.operand[0] = result(a[0], width::WORD);
            i.operand[1] = predicate(i, a[1]);
            i.operand[4] = operand(a[2], width::WORD);
            return;
        case form::REDUCE:
            expect(a.size() == 3);
            i.operand[0] = result(a[0], width::WORD);
            i.operand[1] = operand(a[1], width::WORD);
            i.operand[4] = operand(a[2], width::WORD);
            return;
        case form::INIT:
            expect(a.size() == 2);
            i.at = place(a[0]);
            i.operand[0] = operand(a[1], width::WORD);
            return;
        case form::ARRIVE:
            expect((int)a.size() == o.count && a[0] == "_");
            i.at = place(a[1]);
            i.operand[0] = a.size() > 2 ? operand(a[2], width::WORD) : NONE;
            return;
        case form::AWAIT:
            expect(a.size() == 3);
            i.operand[0] = result(a[0], width::PREDICATE);
            i.at = place(a[1]);
            i.operand[1] = operand(a[2], width::WORD);
            return;
        case form::BULK:
            expect(a.size() == 4);
            i.at = place(a[0]), i.from = place(a[1]), i.barrier = place(a[3]);
            i.operand[0] = operand(a[2], width::WORD);
            return;
        case form::PRODUCT: return product(i, o, a);
        case form::MEET_WARP:
            expect(a.size() == 1);
            i.operand[4] = operand(a[0], width::WORD);
            return;
        case form::MEET: return expect(a.size() == 1 && a[0] == "0");
        case form::MEET_OR:
            expect(a.size() == 3 && a[1] == "0");
            i.operand[0] = result(a[0], width::PREDICATE);
            i.operand[1] = predicate(i, a[2]);
            return;
        case form::NOTHING: return expect(a.empty());
        }
    }

    /* Parses [@p or @!p] mnemonic operands. */
    void parse_instruction() {
        instruction i = {};
        i.line = line;
        size_t at = 0;
        if (said[0] == '@') {
            at = said.find(' ');
            expect(at != std::string::npos);
            i.guard_negated = said[1] == '!';
            i.guard = operand(said.substr(1 + i.guard_negated, at - 1 - i.guard_negated),
                              width::PREDICATE);
            at++;
        }
        const size_t end = std::min(said.find(' ', at), said.size());
        const std::string mnemonic = said.substr(at, end - at);
        const operation *o = find_operation(mnemonic);
        if (!o)
            refuse("`" + mnemonic + "` " + refusal(mnemonic));
        i.mnemonic = o->mnemonic, i.run = o->run, i.kind = o->kind;
        k.is_asynchronous |= is_asynchronous(mnemonic);
        if (o->kind == flow::WARP_EXCHANGE)
            i.operand[4] = number_register(width::WORD, ~0u); /* all lanes, by default */
        used.clear();
        operands(i, *o, split(said.substr(end)));
        if ((o->shape == form::LOAD || o->shape == form::STORE) &&
            mnemonic.find(".shared.") != std::string::npos)
            k.shared_unit =
                std::min(k.shared_unit, size_of_type(mnemonic.substr(mnemonic.rfind('.'))));
        k.code.push_back(i);
        k.code.insert(k.code.end(), after.begin(), after.end());
        after.clear();
        k.touches.resize(k.code.size(), used);
    }

    /* .reg .b32 %r<100>; or .reg .b32 a, b; */
    void declare() {
        std::istringstream words(said);
        std::string directive, type, rest;
        words >> directive >> type;
        getline(words, rest);
        const int size = size_of_type(type);
        if (type != ".pred" && size != 2 && size != 4 && size != 8)
            refuse("registers of a type that is not understood");
        const width of = type == ".pred" ? width::PREDICATE
                         : size == 8     ? width::DOUBLE
                                         : width::WORD;
        for (const std::string &name : split(rest))
            scopes.back().names[name.substr(0, std::min(name.find('<'), name.size() - 1) + 1)] = of;
    }

    /* .param .u64 name, or .param .align 8 .b8 name[32] */
    void declare_parameter(const std::string &text) {
        std::istringstream words(text);
        std::string word, name;
        int align = 0, size = 0;
        words >> word;
        if (word != ".param")
            refuse("no parameter, " + text);
        while (words >> word)
            if (word == ".align")
                words >> align;
            else if (word[0] == '.')
                size = size_of_type(word);
            else
                name = word;
        const size_t bracket = name.find('[');
        if (bracket != std::string::npos)
            size = atoi(name.c_str() + bracket + 1);
        align = align ? align : size;
        if (size <= 0 || align <= 0)
            refuse("a parameter that is not understood, " + text);
        const uint32_t at = (k.parameter_size + align - 1) / align * align;
        k.parameters.push_back({at, (uint32_t)size});
        k.parameter_size = at + size;
        symbols[name.substr(0, bracket)] = at;
    }

    /* .visible .entry name(parameters) .maxntid x, y, z .minnctapersm n */
    void parse_header(const std::string &text) {
        const size_t open = text.find('('), close = text.find(')');
        std::string parameters = text.substr(open + 1, close - open - 1), word;
        for (size_t at = 0; at < parameters.size();) {
            const size_t comma = std::min(parameters.find(',', at), parameters.size());
            declare_parameter(parameters.substr(at, comma - at));
            at = comma + 1;
        }
        k.parameter_memory.resize(k.parameter_size / sizeof(k.parameter_memory[0]) + 1);
        for (auto &[name, at] : symbols)
            at += reinterpret_cast<uint64_t>(k.parameter_memory.data());
        std::istringstream words(text.substr(close + 1));
        unsigned x = 1, y = 1, z = 1;
        char comma;
        while (words >> word)
            if (word == ".maxntid")
                words >> x >> comma >> y >> comma >> z, k.threads_most = x * y * z;
            else if (word == ".minnctapersm")
                words >> word;
            else
                refuse("a directive that is not understood, " + word);
    }

    void parse_statement(const statement &s) {
        line = s.line, said = s.text;
        if (s.end == ':')
            labels[said] = (int)k.code.size();
        else if (s.end == '{')
            scopes.emplace_back();
        else if (s.end == '}')
            expect(said.empty() && !scopes.empty()), scopes.pop_back();
        else if (starts_with(said, ".reg"))
            declare();
        else if (starts_with(said, ".pragma") || said.empty())
            ;
        else if (said[0] == '.')
            refuse("a directive that is not understood");
        else
            parse_instruction();
    }

  public:
    parser(const module &m, kernel &to) : home(m), k(to), in(m.text, to.text, to.line) {}

    void parse() {
        const statement header = in.next();
        line = header.line, said = header.text.substr(0, header.text.find('('));
        parse_header(header.text);
        for (const auto *list : {&home.constants, &home.tables})
            for (const auto &[name, words] : *list)
                symbols[name] = reinterpret_cast<uint64_t>(words.data());
        if (!home.shared.empty())
            symbols[home.shared] = 0;
        scopes.emplace_back();
        while (!scopes.empty()) {
            const statement s = in.next();
            if (!s.end)
                refuse("a kernel without an end");
            parse_statement(s);
        }
        for (const auto &[at, label] : branches) {
            if (!labels.count(label))
                refuse("no label " + label);
            k.code[at].count = labels[label];
        }
        if (!k.is_asynchronous)
            k.touches.clear();
        k.parsed = true;
    }
};

kernel *find_kernel(module &m, const std::string &name) {
    const auto found = m.kernels.find(name);
    if (found == m.kernels.end())
        return nullptr;
    if (!found->second.parsed)
        parser(m, found->second).parse();
    return &found->second;
}

} // namespace ptx
