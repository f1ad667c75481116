/* This file checks that a verdict accepts what is checked. */
#include "verde/run/checks.h"

static const char *role_of(const vd_outcome *o, const vd_hash *root, char text[80]) {
    static const char *const standing[] = {"stands", "is convicted", "forfeits", "is dismissed"};
    for (uint32_t p = 0; p < o->party_count; p++)
        if (o->party[p].claimed && vd_hash_equal(&o->party[p].run_root, root)) {
            snprintf(text, 80, ", the claim of provider %u, which %s", p + 1,
                     standing[o->party[p].standing]);
            return text;
        }
    return "";
}

static vd_status compare(const vd_check_options *o, const vd_check_claim *c, const vd_verdict *v,
                         vd_err *err) {
    const vd_outcome *outcome = &v->outcome;
    char mine[2 * VD_HASH_SIZE + 1], accepted[2 * VD_HASH_SIZE + 1], role[80];
    if (!vd_hash_equal(&v->program, c->program))
        return vd_fail(err, VD_ERR_PEER, "%s: is about another %s than %s%s", o->verdict,
                       c->subject, c->owner, o->path);
    if (!outcome->accepted)
        return vd_fail(err, VD_ERR_PEER, "%s: accepts no result (%s)", o->verdict,
                       vd_result_name(outcome->result));
    if (vd_hash_equal(&outcome->run_root, c->root))
        return VD_OK;
    vd_hex(c->root->b, VD_HASH_SIZE, mine);
    vd_hex(outcome->run_root.b, VD_HASH_SIZE, accepted);
    return vd_fail(err, VD_ERR_PEER, "%s: accepts %s root %s; %s has %s root %s%s", o->verdict,
                   c->kind, accepted, o->path, c->kind, mine, role_of(outcome, c->root, role));
}

vd_status vd_check_accepted(const vd_check_options *o, const vd_check_claim *claim, vd_verdict *out,
                            vd_err *err) {
    *out = (vd_verdict){0};
    if (!o->verdict)
        return VD_OK;
    const vd_status status = vd_load_verdict(o->verdict, o->referee, false, out, err);
    if (status == VD_OK)
        vd_verdict_free(out); /* frees the games, which are not used */
    return status == VD_OK ? compare(o, claim, out, err) : status;
}

json_t *vd_accepted_json(const vd_check_options *o, const vd_verdict *v) {
    char referee[2 * VD_KEY_SIZE + 1];
    vd_hex(v->referee.b, VD_KEY_SIZE, referee);
    return json_pack("{ss sb ss ss sb}", "file", o->verdict, "verified", 1, "referee", referee,
                     "result", vd_result_name(v->outcome.result), "accepts_this", 1);
}

void vd_accepted_text(vd_buf *out, const vd_verdict *v) {
    vd_put_hex(out, "referee", v->referee.b);
    vd_printf(
        out,
        "verdict      verified (signature, and %zu statements decided again): it accepts this "
        "run%s\n",
        v->statements, v->outcome.result == VD_RESULT_FORFEIT ? ", by forfeit" : "");
}
