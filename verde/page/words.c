/* Words for the members of reports. For a name that is not listed, underscores are replaced. */
#include <string.h>

#include "verde/page/internal.h"

static const struct {
    const char *name, *text;
} words[] = {
    {"again", "wrong a second time"},
    {"all", "all of them"},
    {"beacon", "what drew"},
    {"bytes_in", "bytes received"},
    {"bytes_out", "bytes sent"},
    {"checkpoint", "wrong state, after step"},
    {"checkpoints_a", "checkpoints of a"},
    {"checkpoints_b", "checkpoints of b"},
    {"collection", "hash of all programs"},
    {"committed_states", "states that it commits to"},
    {"costs_of_crumbs", "what checking elements cost, by operator"},
    {"compared", "a and b, in the order given, are"},
    {"count", "differences"},
    {"cpu_seconds", "CPU seconds"},
    {"cpu_seconds_of_crumb", "CPU seconds of an element"},
    {"crumbs", "elements drawn"},
    {"differs_at", "first state that differs, after step"},
    {"differs_in", "what differs"},
    {"distance", "distance, in numbers of its type"},
    {"drawn", "drawn to be checked"},
    {"element", "the first of them"},
    {"elements", "elements that differ"},
    {"equal_at", "states are equal up to step"},
    {"executed", "steps executed again"},
    {"fits", "what it can come from"},
    {"found", "found with"},
    {"graph", "graph of"},
    {"guard", "what checks found while it ran"},
    {"inputs_differ", "inputs that differ"},
    {"intervals", "intervals executed again"},
    {"job_root", "root of all runs"},
    {"leaf", "tensor of the state"},
    {"made_by", "made by node"},
    {"most_bytes", "most bytes of one"},
    {"most_cpu_seconds", "most CPU seconds of one"},
    {"node_a", "its number in a"},
    {"node_b", "its number in b"},
    {"not_checked_up_to", "not checked up to step"},
    {"not_finite", "tokens whose log-probability is no number"},
    {"odds", "how likely a cheat is found"},
    {"own_backend", "backend that the run states"},
    {"parts", "parts of long sums"},
    {"peak_bytes", "most memory, in bytes"},
    {"place", "place in the line"},
    {"positions", "places computed"},
    {"proven", "where: a is the run, executed again; b is the audit"},
    {"provider_steps", "steps that the provider executed again, about"},
    {"reference", "value by the operator's definition"},
    {"same_machine", "executed on the machine that the run states"},
    {"secret", "secret that drew"},
    {"share", "share that is wrong"},
    {"stake", "stake that deters, in times the gain"},
    {"state_leaves", "pieces of states"},
    {"stated", "what the run states of its machine"},
    {"states_hashed", "states compared, each byte"},
    {"states_not_hashed", "states not compared"},
    {"stored", "nodes as they are stored"},
    {"stretches", "stretches between stored states"},
    {"structure", "hash without names"},
    {"structure_a", "hash of a without names"},
    {"structure_b", "hash of b without names"},
    {"tensor", "what the node put out, or the state's tensor"},
    {"trace", "root of the step's trace"},
    {"uuid", "UUID"},
    {"value_a", "value in a"},
    {"value_b", "value in b"},
    {"whole", "nodes checked whole"},
    {"whole_elements", "their elements"},
};

const char *vd_page_word(const char *name, char text[VD_PAGE_WORD]) {
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i].name, name) == 0)
            return words[i].text;
    snprintf(text, VD_PAGE_WORD, "%.79s", name);
    for (char *at = text; *at; at++)
        *at = *at == '_' ? ' ' : *at;
    return text;
}
