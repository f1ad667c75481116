/* Prints who claims what, in a dispute between many. */
#include <string.h>

#include "verde/client/arbitrate.h"
#include "verde/load/verdict_file.h"

/* Returns the number of a provider's claim. Claims are numbered by their first provider. */
static uint32_t number_of_claim(const vd_outcome *o, uint32_t provider) {
    uint32_t number = 0;
    for (uint32_t p = 0; p <= provider; p++) {
        bool first = o->party[p].claimed;
        for (uint32_t q = 0; q < p && first; q++)
            first = !(o->party[q].claimed &&
                      vd_hash_equal(&o->party[q].run_root, &o->party[p].run_root));
        number += first;
        if (o->party[p].claimed &&
            vd_hash_equal(&o->party[p].run_root, &o->party[provider].run_root))
            return number;
    }
    return number;
}

static void tell_claim(const vd_arbitration *x, const vd_outcome *o, uint32_t p) {
    char line[480], claim[12] = "-", root[2 * VD_HASH_SIZE + 1] = "-";
    if (o->party[p].claimed) {
        snprintf(claim, sizeof claim, "%u", number_of_claim(o, p));
        vd_hex(o->party[p].run_root.b, VD_HASH_SIZE, root);
    }
    snprintf(line, sizeof line, "%8u  %5s  %-8.8s  %-9s  %s", p + 1, claim, root,
             vd_standing_name(o->party[p].standing), x->endpoint[p].url);
    vd_tell(NULL, line);
}

void vd_tell_claims(void *user, const vd_tournament *tournament) {
    const vd_arbitration *x = user;
    const vd_outcome *o = vd_tournament_outcome(tournament);
    vd_tell(NULL, "provider  claim  run root  standing   address");
    for (uint32_t p = 0; p < o->party_count; p++)
        tell_claim(x, o, p);
}
