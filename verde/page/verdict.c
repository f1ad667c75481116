/* The page of a verdict: decides it again, and records what happens. */
#include <stdlib.h>
#include <string.h>

#include "verde/exec/exec.h"
#include "verde/exec/source.h"
#include "verde/page/internal.h"

const vd_place *vd_page_place(const vd_outcome *o) {
    for (uint32_t i = o->party_count > 2 ? o->game_count : 0; i > 0; i--)
        if (o->game[i - 1].place.step != VD_NO_STEP)
            return &o->game[i - 1].place;
    return &o->place;
}

bool vd_page_pair(const vd_outcome *o, uint32_t provider[2]) {
    for (uint32_t i = o->party_count > 2 ? o->game_count : 0; i > 0; i--)
        if (o->game[i - 1].place.step != VD_NO_STEP) {
            memcpy(provider, o->game[i - 1].provider, sizeof o->game[i - 1].provider);
            return true;
        }
    provider[0] = 0;
    provider[1] = 1;
    return o->party_count == 2;
}

/* ---- while it is decided again ---- */

static void take_line(void *user, const char *line) {
    vd_page_watch *w = user;
    vd_printf(&w->story, "<li>");
    vd_html_text(&w->story, line);
    vd_printf(&w->story, "</li>\n");
}

static void take_heard(void *user, const vd_heard *heard) {
    vd_page_heard(user, heard);
}

static void take_computing(void *user) {
    vd_page_watch *w = user;
    w->terms = 0;
}

static void take_reading(void *user, int input, int64_t index, uint32_t bits) {
    vd_page_watch *w = user;
    if (w->terms < VD_PAGE_TERMS)
        w->term[w->terms] = (vd_page_term){input, index, bits};
    w->terms++;
}

static void take_program(void *user, int64_t item, const vd_program *program) {
    vd_page_watch *w = user;
    if (item != vd_page_place(&w->verdict->outcome)->item)
        return;
    vd_page_where(w, program);
    vd_page_graph(w, program);
    vd_page_element(w, program);
}

/* ---- the outcome ---- */

static const char *mood_of(const vd_outcome *o) {
    switch (o->result) {
    case VD_RESULT_AGREED: return "good";
    case VD_RESULT_CONVICTED: return "bad";
    default: return "wait";
    }
}

/* Writes a subject such as "Providers 1 and 3". Returns their number. */
static uint32_t put_those(vd_buf *out, const vd_outcome *o, vd_standing standing) {
    uint32_t count = 0, said = 0;
    for (uint32_t p = 0; p < o->party_count; p++)
        count += o->party[p].standing == standing;
    vd_printf(out, "Provider%s", count == 1 ? "" : "s");
    for (uint32_t p = 0; p < o->party_count; p++)
        if (o->party[p].standing == standing) {
            said++;
            vd_printf(out, "%s%u", said == 1 ? " " : said == count ? " and " : ", ", p + 1);
        }
    return count;
}

static void put_headline(vd_buf *out, const vd_outcome *o) {
    switch (o->result) {
    case VD_RESULT_AGREED: vd_printf(out, "All agree"); break;
    case VD_RESULT_CONVICTED:
        vd_printf(out, put_those(out, o, VD_CONVICTED) == 1 ? " is convicted" : " are convicted");
        break;
    case VD_RESULT_FORFEIT:
        vd_printf(out, put_those(out, o, VD_FORFEITED) == 1 ? " forfeits" : " forfeit");
        break;
    case VD_RESULT_DISMISSED: vd_printf(out, "The auditor&#39;s claim is dismissed"); break;
    default: vd_printf(out, "Nothing is decided");
    }
}

static void put_banner(const vd_page_watch *w, vd_buf *out) {
    const vd_outcome *o = &w->verdict->outcome;
    vd_printf(out, "<div class=\"card banner %s\"><p class=\"outcome\">", mood_of(o));
    put_headline(out, o);
    vd_printf(out, "</p>\n");
    for (uint32_t p = 0; p < o->party_count; p++)
        if (o->party[p].standing != VD_STANDS) {
            vd_printf(out, "<p><b>Provider %u, %s:</b> ", p + 1, vd_grade_name(o->party[p].grade));
            vd_html_text(out, o->party[p].reason);
            vd_printf(out, ".</p>\n");
        }
    if (o->accepted) {
        vd_printf(out, "<p>The run that is accepted%s: ",
                  o->result == VD_RESULT_FORFEIT ? ", by forfeit" : "");
        vd_page_hash(out, &o->run_root);
        vd_printf(out, "</p>\n");
    } else if (!w->verdict->fraud) {
        vd_printf(out, "<p>No run is accepted.</p>\n");
    }
    vd_printf(out, "</div>\n");
}

static void put_party(const vd_page_watch *w, uint32_t p, vd_buf *out) {
    static const char *const standing[] = {"stands", "convicted", "forfeits", "dismissed"};
    static const char *const class[] = {"good", "bad", "wait", "wait"};
    const struct vd_party_outcome *party = &w->verdict->outcome.party[p];
    vd_printf(out, "<tr>");
    vd_html_cell(out, "provider", "");
    vd_printf(out, "%u</td>", p + 1);
    vd_html_cell(out, "standing", class[party->standing]);
    vd_printf(out, "<span class=\"state\">%s</span></td>", standing[party->standing]);
    vd_html_cell(out, "key", "wide");
    vd_page_key(out, &w->verdict->assignment.provider[p]);
    vd_printf(out, "</td>");
    vd_html_cell(out, "its run", "");
    if (party->claimed) {
        char hex[2 * VD_HASH_SIZE + 1];
        vd_hex(party->run_root.b, VD_HASH_SIZE, hex);
        vd_html_short(out, hex);
    }
    vd_printf(out, "</td></tr>\n");
}

static void put_parties(const vd_page_watch *w, vd_buf *out) {
    vd_page_title(out, "Who took part");
    vd_printf(out, "<div class=\"card\"><table><thead><tr><th>provider<th>standing<th>key<th>its "
                   "run</thead>\n");
    for (uint32_t p = 0; p < w->verdict->outcome.party_count; p++)
        put_party(w, p, out);
    vd_printf(out, "</table></div>\n");
}

static void put_facts(const vd_page_watch *w, vd_buf *out) {
    const vd_verdict *v = w->verdict;
    vd_printf(out, "<div class=\"card\"><dl><dt>referee<dd>");
    vd_page_key(out, &v->referee);
    vd_printf(out, "<dt>program<dd>");
    vd_page_hash(out, &v->program);
    if (vd_verdict_has_structure(v)) {
        vd_printf(out, "<dt>its structure<dd>");
        vd_page_hash(out, &v->structure);
    }
    vd_printf(out, "<dt>cost for the referee<dd>%u rounds, ", v->outcome.rounds);
    vd_page_bytes(out, v->cost.bytes_in);
    vd_printf(out, " in, ");
    vd_page_bytes(out, v->cost.bytes_out);
    vd_printf(out, " out, %.2f s (%.3f s of CPU), ", v->cost.seconds, v->cost.cpu_seconds);
    vd_page_bytes(out, v->cost.peak_bytes);
    vd_printf(out, " peak memory<dt>this verdict<dd>");
    vd_page_bytes(out, w->note_size);
    vd_printf(out, ", %zu statements</dl></div>\n", v->statements);
}

static void put_challenge(const vd_outcome *o, vd_buf *out) {
    if (o->challenge.end == VD_CHALLENGE_NONE)
        return;
    vd_page_title(out, "The challenge");
    if (o->party_count <= 2)
        vd_printf(out, "<div class=\"card\"><p>Provider %u %s.</p>\n", o->challenge.challenger + 1,
                  vd_challenge_told(o->challenge.end));
    else
        vd_printf(out, "<div class=\"card\"><p>Whoever was convicted could run again: %s.</p>\n",
                  vd_challenge_name(o->challenge.end));
    if (o->challenge.reason[0]) {
        vd_printf(out, "<p>");
        vd_html_text(out, o->challenge.reason);
        vd_printf(out, "</p>\n");
    }
    vd_printf(out, "</div>\n");
}

static void put_game(const vd_game_outcome *g, uint32_t number, vd_buf *out) {
    vd_printf(out, "<tr>");
    vd_html_cell(out, "game", "");
    vd_printf(out, "%u</td>", number);
    vd_html_cell(out, "providers", "");
    vd_printf(out, "%u and %u</td>", g->provider[0] + 1, g->provider[1] + 1);
    vd_html_cell(out, "end", "");
    for (int i = 0; i < 2; i++)
        vd_printf(out, "%s%u %s", i ? ", " : "", g->provider[i] + 1,
                  vd_standing_name(g->standing[i]));
    vd_printf(out, "</td>");
    vd_html_cell(out, "where", "wide");
    if (g->place.step != VD_NO_STEP)
        vd_printf(out, "step %lld ", (long long)g->place.step);
    if (g->place.node >= 0) {
        vd_printf(out, "node %lld ", (long long)g->place.node);
        vd_html_text(out, g->place.node_name);
    }
    vd_printf(out, "</td></tr>\n");
}

static void put_games(const vd_outcome *o, vd_buf *out) {
    if (o->party_count <= 2 || !o->game_count)
        return;
    vd_page_title(out, "Games");
    vd_printf(out, "<div class=\"card\"><table><thead><tr><th>game<th>providers<th>end<th>where"
                   "</thead>\n");
    for (uint32_t i = 0; i < o->game_count; i++)
        put_game(&o->game[i], i + 1, out);
    vd_printf(out, "</table></div>\n");
}

static void put_section(vd_buf *out, const char *title, const vd_buf *section) {
    if (section->size == 0)
        return;
    vd_page_title(out, title);
    vd_put(out, section->data, section->size);
    out->failed |= section->failed;
}

static void put_body(const vd_page_watch *w, const char *name, vd_buf *out) {
    vd_printf(out, "<header><h1>%s</h1><p class=\"soft\">",
              w->verdict->fraud ? "A proof of fraud" : "A verdict");
    vd_html_text(out, name);
    vd_printf(out, "</p></header>\n<main>\n");
    put_banner(w, out);
    put_parties(w, out);
    put_games(&w->verdict->outcome, out);
    put_section(out, "Where", &w->where);
    put_section(out, "The graph around it", &w->graph);
    put_section(out, "The element", &w->element);
    put_challenge(&w->verdict->outcome, out);
    vd_page_title(out, "What it is about");
    put_facts(w, out);
}

static void put_folded(const vd_page_watch *w, vd_buf *out) {
    if (w->story.size) {
        vd_page_title(out, "The story");
        vd_printf(out, "<div class=\"card\"><ol>\n");
        vd_put(out, w->story.data, w->story.size);
        vd_printf(out, "</ol></div>\n");
    }
    vd_page_title(out, "Signed statements");
    vd_printf(out, "<p class=\"soft\">All that the providers answered, in the order of the "
                   "referee&#39;s questions; each is signed by its provider, so that nobody else "
                   "can be convicted by it.</p>\n<div class=\"card\">\n");
    vd_put(out, w->evidence.data, w->evidence.size);
    vd_printf(out, "</div>\n</main>\n");
    out->failed |= w->story.failed | w->evidence.failed;
}

static void watch_free(vd_page_watch *w) {
    vd_buf_free(&w->evidence);
    vd_buf_free(&w->story);
    vd_buf_free(&w->where);
    vd_buf_free(&w->graph);
    vd_buf_free(&w->element);
}

vd_status vd_page_of_verdict(const char *name, const void *note, size_t size,
                             const vd_buf *verifier, vd_buf *out, vd_verdict *verdict,
                             vd_err *err) {
    vd_page_watch w = {.verdict = verdict, .note_size = size};
    vd_buf body = {0}, script = {0};
    const vd_watch watch = {.leaf = vd_leaf_element,
                            .story = take_line,
                            .heard = take_heard,
                            .computing = take_computing,
                            .reading = take_reading,
                            .program = take_program,
                            .user = &w};
    vd_status status = vd_verdict_watch(note, size, NULL, &watch, verdict, err);
    if (status == VD_OK) {
        put_body(&w, name, &body);
        if (verifier)
            status = vd_page_verifier(verifier, name, note, size, &body, &script, err);
        put_folded(&w, &body);
    }
    if (status == VD_OK)
        status = vd_page_frame(name, &body, verifier ? (const char *)script.data : NULL, out, err);
    vd_buf_free(&body);
    vd_buf_free(&script);
    watch_free(&w);
    return status;
}
