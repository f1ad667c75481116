/* Writes an outcome as a JSON object. PROTOCOL.md section 7. */
#include "verde/protocol/verdict.h"

static json_t *hex32(uint32_t bits) {
    char text[16];
    snprintf(text, sizeof text, "0x%08x", bits);
    return json_string(text);
}

static json_t *party_json(const vd_outcome *o, uint32_t p, const vd_public_key *key) {
    const struct vd_party_outcome *party = &o->party[p];
    char hex[2 * VD_KEY_SIZE + 1];
    vd_hex(key->b, VD_KEY_SIZE, hex);
    json_t *out = json_pack("{ss ss}", "key", hex, "standing", vd_standing_name(party->standing));
    if (party->standing != VD_STANDS) {
        json_object_set_new(out, "grade", json_string(vd_grade_name(party->grade)));
        json_object_set_new(out, "reason", json_string(party->reason));
    }
    if (party->claimed)
        json_object_set_new(out, "run_root", vd_hash_text(&party->run_root));
    if (o->place.element >= 0)
        json_object_set_new(out, "value", hex32(o->place.value[p]));
    if (party->game)
        json_object_set_new(out, "game", json_integer(party->game));
    return out;
}

/* Returns NULL if the log was not read. */
static json_t *logged_json(const vd_place *place) {
    switch (place->logged_as) {
    case VD_LOGGED_UNREAD: return NULL;
    case VD_LOGGED_RANGE:
        return json_pack("[o, o]", hex32(place->logged[0]), hex32(place->logged[1]));
    case VD_LOGGED_NOTHING: return json_string("missing");
    case VD_LOGGED_OTHER: return json_string("none of them");
    }
    return NULL;
}

static void put_place(json_t *out, const vd_place *place) {
    if (place->item >= 0)
        json_object_set_new(out, "item", json_integer(place->item));
    if (place->step != VD_NO_STEP)
        json_object_set_new(out, "step", json_integer(place->step));
    if (place->node >= 0) {
        json_object_set_new(out, "node", json_integer(place->node));
        json_object_set_new(out, "node_name", json_string(place->node_name));
        json_object_set_new(out, "operator", json_string(place->operator_name));
    }
    if (place->element >= 0)
        json_object_set_new(out, "element", json_integer(place->element));
    if (place->part >= 0)
        json_object_set_new(out, "part", json_integer(place->part));
    if (place->computed)
        json_object_set_new(out, "expected", hex32(place->expected));
    if (place->rounded)
        json_object_set_new(
            out, "possible",
            json_pack("[o, o]", hex32(place->possible[0]), hex32(place->possible[1])));
    json_t *logged = logged_json(place);
    if (logged)
        json_object_set_new(out, "logged", logged);
}

static json_t *challenge_json(const vd_outcome *o) {
    const struct vd_challenge_outcome *c = &o->challenge;
    json_t *out =
        json_pack("{ss si}", "end", vd_challenge_name(c->end), "provider", (int)c->challenger);
    if (c->claimed)
        json_object_set_new(out, "run_root", vd_hash_text(&c->run_root));
    if (c->end < VD_CHALLENGE_FAILED)
        return out;
    if (c->grade != VD_GRADE_NONE) {
        json_object_set_new(out, "grade", json_string(vd_grade_name(c->grade)));
        json_object_set_new(out, "reason", json_string(c->reason));
    }
    put_place(out, &c->place);
    if (c->place.element >= 0)
        json_object_set_new(
            out, "values", json_pack("[o, o]", hex32(c->place.value[0]), hex32(c->place.value[1])));
    return out;
}

/* ---- more than two providers ---- */

static json_t *game_json(const vd_game_outcome *game) {
    json_t *out =
        json_pack("{sI s[I, I] sI s[s, s]}", "level", (json_int_t)game->level, "providers",
                  (json_int_t)game->provider[0], (json_int_t)game->provider[1], "rounds",
                  (json_int_t)game->rounds, "standing", vd_standing_name(game->standing[0]),
                  vd_standing_name(game->standing[1]));
    put_place(out, &game->place);
    if (game->place.element >= 0)
        json_object_set_new(
            out, "values",
            json_pack("[o, o]", hex32(game->place.value[0]), hex32(game->place.value[1])));
    return out;
}

static json_t *contest_json(const vd_contest_outcome *contest) {
    json_t *out = json_pack("{sI}", "provider", (json_int_t)contest->provider);
    if (contest->claimed)
        json_object_set_new(out, "run_root", vd_hash_text(&contest->run_root));
    if (contest->game) {
        json_object_set_new(out, "grade", json_string(vd_grade_name(contest->grade)));
        json_object_set_new(out, "reason", json_string(contest->reason));
        json_object_set_new(out, "game", json_integer(contest->game));
    }
    return out;
}

static json_t *contests_json(const vd_outcome *o) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < o->contest_count; i++)
        json_array_append_new(list, contest_json(&o->contest[i]));
    return json_pack("{ss so}", "end", vd_challenge_name(o->challenge.end), "providers", list);
}

static void put_games(json_t *out, const vd_outcome *o) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < o->game_count; i++)
        json_array_append_new(list, game_json(&o->game[i]));
    json_object_set_new(out, "games", list);
    if (o->challenge.end != VD_CHALLENGE_NONE)
        json_object_set_new(out, "challenge", contests_json(o));
}

/* ---- all of it ---- */

json_t *vd_outcome_json(const vd_outcome *o, const vd_assignment *assignment) {
    json_t *parties = json_array();
    for (uint32_t p = 0; p < o->party_count; p++)
        json_array_append_new(parties, party_json(o, p, &assignment->provider[p]));
    json_t *out = json_pack("{ss so sb sI}", "result", vd_result_name(o->result), "providers",
                            parties, "accepted", o->accepted, "rounds", (json_int_t)o->rounds);
    if (o->accepted)
        json_object_set_new(out, "run_root", vd_hash_text(&o->run_root));
    if (o->party_count > 2) {
        put_games(out, o);
        return out;
    }
    put_place(out, &o->place);
    if (o->challenge.end != VD_CHALLENGE_NONE)
        json_object_set_new(out, "challenge", challenge_json(o));
    return out;
}
