/* Predicts by a model how long a step of GPT-2 takes with many processes. The plan and its messages
 * are those of verde/team; the times of nodes are measured with one thread of this machine; the
 * network is assumed. */
#include "bench/bench.h"
#include "bench/workload.h"
#include "verde/exec/exec.h"
#include "verde/team/team.h"

enum { MEASURED_MICRO_BATCHES = 2, MEASURED_STEPS = 3, LISTS_MAX = 16 };

typedef struct {
    int layers, heads, channels, batch, sequence, micro_batches;
    double latency_us;
    double gbit, faster; /* of the table that is being printed */
    bool tree;           /* values for many ranks are sent by scattering and gathering */
    double ranks[LISTS_MAX], gbits[LISTS_MAX], fasters[LISTS_MAX];
    int rank_count, gbit_count, faster_count;
    const char *csv;
} arguments;

static void die(const char *what) {
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

static void check(vd_status status, const vd_err *err) {
    if (status != VD_OK)
        die(err->text);
}

static void *room(size_t count, size_t size) {
    void *block = calloc(count + 1, size);
    if (!block)
        die("out of memory");
    return block;
}

static void open_work(workload *w, const arguments *a, int micro_batches) {
    const vd_model model = workload_gpt2(a->layers, a->heads, a->channels);
    const vd_optimizer adamw = {.lr = 6e-4f,
                                .beta1 = 0.9f,
                                .beta2 = 0.95f,
                                .eps = 1e-8f,
                                .weight_decay = 0.1f,
                                .clip_norm = 1};
    vd_err err = {0};
    if (!workload_open(w, &model, &adamw, a->batch, a->sequence, micro_batches,
                       vd_products_alike(0), &err))
        die(err.text);
}

/* ---- measured: seconds of each stored node, and of one addition in each sum ---- */

typedef struct {
    double *stored, *sum;
    double step, copy_s; /* of a whole fused step; of copying a byte */
} costs;

typedef struct {
    const vd_graph *graph;
    costs *out;
    double last;
} stopwatch;

static bool see(void *user, uint32_t node, const void *const *input, const void *output) {
    stopwatch *s = user;
    const double now = bench_now(1);
    const vd_spot spot = vd_node_spot(s->graph, node);
    const double each = spot.repeat ? MEASURED_MICRO_BATCHES : 1; /* iterations */
    (void)input, (void)output;
    if (spot.stored == VD_SPOT_SUM)
        s->out->sum[spot.sum] += now - s->last;
    else
        s->out->stored[spot.stored] += (now - s->last) / each;
    s->last = bench_now(1);
    return true;
}

/* Scales the times of all nodes so that their total is the time of a step with fused functions. */
static void scale(const vd_graph *g, costs *c) {
    double all = 0;
    for (uint32_t n = 0; n < g->node_count; n++) {
        const vd_spot spot = vd_node_spot(g, n);
        all += spot.stored == VD_SPOT_SUM ? c->sum[spot.sum] : c->stored[spot.stored];
    }
    for (uint32_t i = 0; i < g->stored_count; i++)
        c->stored[i] *= c->step / all;
    for (uint32_t i = 0; i < g->sum_count; i++)
        c->sum[i] *= c->step / all;
}

/* Times copies back and forth, between pages that are already mapped. */
static void measure_copy(costs *c) {
    enum { BYTES = 64 << 20, TURNS = 6 };
    char *block[2] = {room(BYTES, 1), room(BYTES, 1)};
    double best = 1;
    memset(block[0], 1, BYTES);
    for (int i = 0; i < TURNS; i++) {
        const double start = bench_now(1);
        memcpy(block[(i + 1) % 2], block[i % 2], BYTES);
        best = fmin(best, bench_now(1) - start);
    }
    if (memcmp(block[0], block[1], BYTES) != 0) /* reads them, so that copies happen */
        die("memory failed");
    c->copy_s = best / BYTES;
    free(block[0]);
    free(block[1]);
}

static void measure(const arguments *a, costs *c) {
    workload w;
    vd_state state;
    vd_err err = {0};
    open_work(&w, a, MEASURED_MICRO_BATCHES);
    const vd_graph *g = &w.program.step;
    const void *data[] = {w.data};
    vd_exec exec = {.program = &w.program, .data = data};
    double step[MEASURED_STEPS];
    if (ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 1}, &exec.ro) != RO_OK)
        die(ro_ctx_error(NULL));
    check(vd_exec_init(&exec, NULL, &state, &err), &err);
    for (int i = 0; i < MEASURED_STEPS; i++) {
        const double start = bench_now(1);
        check(vd_exec_step(&exec, NULL, &state, NULL, &err), &err);
        step[i] = bench_now(1) - start;
    }
    *c = (costs){room(g->stored_count, sizeof(double)), room(g->sum_count, sizeof(double)),
                 bench_median(step, MEASURED_STEPS), 0};
    stopwatch s = {g, c, bench_now(1)};
    check(vd_exec_observe(&exec, &(vd_observer){see, &s}, &state, &err), &err);
    scale(g, c);
    measure_copy(c);
    vd_state_free(&state);
    ro_ctx_destroy(exec.ro);
    workload_close(&w);
}

/* ---- the model ---- */

typedef struct {
    uint32_t *node; /* in the order in which the rank runs them */
    uint32_t count, room, next, input;
    double clock, link; /* when it has finished its work so far; when its link is free to send */
    uint64_t sent;
    bool waits;
} rank_state;

typedef struct {
    const arguments *a;
    const costs *c;
    const vd_program *program;
    const vd_graph *graph;
    vd_team_plan plan;
    uint32_t sources;
    rank_state *rank;
    double *arrival;  /* of each message; negative: not yet sent */
    double *incoming; /* of each rank: when its link is free to receive */
} model;

static double cost_of(const model *m, uint32_t node) {
    const vd_spot spot = vd_node_spot(m->graph, node);
    return (spot.stored == VD_SPOT_SUM ? m->c->sum[spot.sum] : m->c->stored[spot.stored]) /
           m->a->faster;
}

static void list_node(model *m, uint32_t rank, uint32_t node, bool waiting) {
    rank_state *r = &m->rank[rank];
    if (vd_team_waits(&m->plan, rank, node) != waiting)
        return;
    if (r->count == r->room) {
        r->room = r->room ? 2 * r->room : 1024;
        r->node = realloc(r->node, r->room * sizeof *r->node);
        if (!r->node)
            die("out of memory");
    }
    r->node[r->count++] = node;
}

static void list_some(model *m, uint32_t from, uint32_t to, bool waiting) {
    for (uint32_t n = from; n < to; n++) {
        const uint32_t owner = vd_team_owner(&m->plan, n);
        for (uint32_t r = 0; owner == VD_TEAM_ALL && r < m->plan.ranks; r++)
            list_node(m, r, n, waiting);
        if (owner != VD_TEAM_ALL)
            list_node(m, owner, n, waiting);
    }
}

/* Lists each rank's nodes in the order in which the executor runs them (verde/exec/executor.c). */
static void list_nodes(model *m) {
    const vd_graph *g = m->graph;
    uint32_t next = 0;
    for (uint32_t i = 0; i < g->repeat_count; i++) {
        const uint32_t end = g->repeat[i].start + (uint32_t)vd_repeat_nodes(&g->repeat[i]);
        list_some(m, next, end, false);
        list_some(m, g->repeat[i].start, end, true);
        next = end;
    }
    list_some(m, next, g->node_count, false);
}

/* Sends a message. A link carries one message at a time in each direction. */
static void send_one(model *m, uint32_t message, double bytes) {
    const vd_team_message *to = &m->plan.message[message];
    rank_state *from = &m->rank[to->from];
    const double seconds = bytes / (m->a->gbit * 1e9 / 8);
    const double start = from->clock > from->link ? from->clock : from->link;
    const double in = m->incoming[to->to] > start ? m->incoming[to->to] : start;
    from->link = start + seconds;
    m->incoming[to->to] = in + seconds;
    m->arrival[message] = in + seconds + m->a->latency_us * 1e-6;
    from->sent += (uint64_t)bytes;
}

/* Sends a value to several ranks by scattering and gathering: each link carries its bytes twice. */
static void send_by_tree(model *m, uint32_t first, uint32_t count, double bytes) {
    rank_state *from = &m->rank[m->plan.message[first].from];
    const double seconds = 2 * bytes / (m->a->gbit * 1e9 / 8);
    double start = from->clock > from->link ? from->clock : from->link;
    for (uint32_t i = first; i < first + count; i++)
        start = fmax(start, m->incoming[m->plan.message[i].to]);
    from->link = start + seconds;
    for (uint32_t i = first; i < first + count; i++) {
        m->incoming[m->plan.message[i].to] = start + seconds;
        m->arrival[i] = start + seconds + 2 * log2(count + 1) * m->a->latency_us * 1e-6;
    }
    from->sent += (uint64_t)(2 * bytes);
}

static void send_value(model *m, uint32_t rank, uint32_t value) {
    uint32_t first;
    const uint32_t count = vd_team_messages_of(&m->plan, value, &first);
    const double bytes = (double)vd_shape_bytes(vd_value_shape(m->program, m->graph, value));
    const bool tree = m->a->tree && count > 1;
    if (count == 0)
        return;
    m->rank[rank].clock += m->c->copy_s * bytes * (tree ? 1 : count);
    for (uint32_t i = first; i < first + count && !tree; i++)
        send_one(m, i, bytes);
    if (tree)
        send_by_tree(m, first, count, bytes);
    for (uint32_t i = first; i < first + count; i++)
        m->rank[m->plan.message[i].to].waits = false;
}

/* Receives a value that another rank sends. Returns false if it has not been sent yet. */
static bool fetch(model *m, uint32_t rank, uint32_t value) {
    const uint32_t message = vd_team_message_to(&m->plan, value, rank);
    rank_state *r = &m->rank[rank];
    if (message == UINT32_MAX)
        return true;
    r->waits = m->arrival[message] < 0;
    r->clock = fmax(r->clock, m->arrival[message]);
    return !r->waits;
}

/* Runs one node or, after the last one, receives the leaves that the rank keeps. */
static void run_one(model *m, uint32_t rank) {
    rank_state *r = &m->rank[rank];
    if (r->next == r->count) {
        for (; r->input < m->program->leaf_count; r->input++)
            if (vd_team_keeps(&m->plan, rank, r->input) &&
                !fetch(m, rank, m->graph->output[r->input]))
                return;
        r->next++;
        return;
    }
    const uint32_t node = r->node[r->next];
    const uint32_t inputs = (uint32_t)vd_node_stored(m->graph, node)->input_count;
    for (; r->input < inputs; r->input++)
        if (!fetch(m, rank, vd_node_input(m->graph, node, (int32_t)r->input)))
            return;
    r->clock += cost_of(m, node);
    r->input = 0;
    r->next++;
    if (vd_team_owner(&m->plan, node) == rank)
        send_value(m, rank, m->sources + node);
}

/* Runs some nodes of the rank whose clock is the furthest behind. */
static bool run_some(model *m) {
    const uint32_t ranks = m->plan.ranks;
    uint32_t best = ranks;
    for (uint32_t r = 0; r < ranks; r++)
        if (!m->rank[r].waits && m->rank[r].next <= m->rank[r].count &&
            (best == ranks || m->rank[r].clock < m->rank[best].clock))
            best = r;
    if (best < ranks)
        run_one(m, best);
    return best < ranks;
}

typedef struct {
    double seconds;
    uint64_t sent, most_sent; /* by all ranks; by the one that sends most */
} result;

static result simulate(const arguments *a, const costs *c, const vd_program *program,
                       uint32_t ranks) {
    model m = {.a = a, .c = c, .program = program, .graph = &program->step};
    vd_err err = {0};
    result out = {0};
    check(vd_team_plan_create(program, ranks, &m.plan, &err), &err);
    m.sources = vd_source_count(program, m.graph);
    m.rank = room(ranks, sizeof *m.rank);
    m.arrival = room(m.plan.message_count, sizeof *m.arrival);
    m.incoming = room(ranks, sizeof *m.incoming);
    for (uint32_t i = 0; i < m.plan.message_count; i++)
        m.arrival[i] = -1;
    list_nodes(&m);
    while (run_some(&m))
        ;
    for (uint32_t r = 0; r < ranks; r++) {
        if (m.rank[r].next <= m.rank[r].count)
            die("the plan waits for itself");
        out.seconds = fmax(out.seconds, m.rank[r].clock);
        out.sent += m.rank[r].sent;
        out.most_sent = m.rank[r].sent > out.most_sent ? m.rank[r].sent : out.most_sent;
        free(m.rank[r].node);
    }
    free(m.rank);
    free(m.arrival);
    free(m.incoming);
    vd_team_plan_free(&m.plan);
    return out;
}

/* ---- the table ---- */

static void print_all(const arguments *a, const costs *c, const vd_program *program, FILE *csv) {
    const double alone = simulate(a, c, program, 1).seconds;
    printf("%s, %g Gbit/s and %g us a link, nodes %g times as fast\n",
           a->tree ? "new weights by scattering and gathering" : "new weights one by one", a->gbit,
           a->latency_us, a->faster);
    printf("%8s %12s %9s %11s %14s %14s\n", "ranks", "step s", "speed-up", "efficiency", "sent GB",
           "most by one GB");
    for (int i = 0; i < a->rank_count; i++) {
        const uint32_t ranks = (uint32_t)a->ranks[i];
        const result r = simulate(a, c, program, ranks);
        printf("%8u %12.4f %9.2f %10.1f%% %14.3f %14.3f\n", ranks, r.seconds, alone / r.seconds,
               100 * alone / r.seconds / ranks, 1e-9 * (double)r.sent, 1e-9 * (double)r.most_sent);
        if (csv)
            fprintf(csv, "%d,%g,%g,%g,%u,%.6f,%.3f,%llu,%llu\n", a->tree, a->gbit, a->latency_us,
                    a->faster, ranks, r.seconds, alone / r.seconds, (unsigned long long)r.sent,
                    (unsigned long long)r.most_sent);
        fflush(stdout);
    }
}

static const char usage[] =
    "Predicts the time of a step of GPT-2 by many processes, from one thread's times.\n\n"
    "  --layers N --heads N --channels N   default 12, 12, 768: 124M\n"
    "  --batch N --sequence N    of a micro-batch, default 1 and 256\n"
    "  --micro-batches N         default 512\n"
    "  --ranks N,N,...           default 2,8,64,512\n"
    "  --gbit X,X,... --latency-us X   of each process's link, default 10,100 and 10\n"
    "  --faster X,X,...          nodes take a time X times as short as here, default 1\n"
    "  --csv FILE                the same numbers, as lines added to FILE";

static int parse_list(double *list, const char *text) {
    int count = 0;
    for (char *end; count < LISTS_MAX; text = *end ? end + 1 : end) {
        const double x = strtod(text, &end);
        if (end == text)
            break;
        list[count++] = x;
    }
    return count;
}

static void parse(arguments *a, int argc, char **argv) {
    enum { MOST = 1 << 20 };
    const char *ranks = "2,8,64,512", *gbits = "10,100", *fasters = "1", *latency = "10";
    const bench_option known[] = {{"--layers", NULL, &a->layers, 1, MOST},
                                  {"--heads", NULL, &a->heads, 1, MOST},
                                  {"--channels", NULL, &a->channels, 1, MOST},
                                  {"--batch", NULL, &a->batch, 1, MOST},
                                  {"--sequence", NULL, &a->sequence, 1, MOST},
                                  {"--micro-batches", NULL, &a->micro_batches, 1, MOST},
                                  {"--latency-us", &latency, NULL, 0, 0},
                                  {"--ranks", &ranks, NULL, 0, 0},
                                  {"--gbit", &gbits, NULL, 0, 0},
                                  {"--faster", &fasters, NULL, 0, 0},
                                  {"--csv", &a->csv, NULL, 0, 0}};
    bench_options(argc, argv, usage, known, sizeof known / sizeof known[0]);
    a->latency_us = atof(latency);
    a->rank_count = parse_list(a->ranks, ranks);
    a->gbit_count = parse_list(a->gbits, gbits);
    a->faster_count = parse_list(a->fasters, fasters);
}

int main(int argc, char **argv) {
    arguments a = {.layers = 12,
                   .heads = 12,
                   .channels = 768,
                   .batch = 1,
                   .sequence = 256,
                   .micro_batches = 512};
    costs c;
    workload w;
    parse(&a, argc, argv);
    FILE *csv = bench_csv_file(
        a.csv, "tree,gbit,latency_us,faster,ranks,step_s,speed_up,sent_bytes,most_sent_bytes");
    measure(&a, &c);
    printf("measured: a step of %d micro-batches of %d x %d tokens by one thread takes %.3f s; "
           "copies %.1f GB/s\n",
           MEASURED_MICRO_BATCHES, a.batch, a.sequence, c.step, 1e-9 / c.copy_s);
    open_work(&w, &a, a.micro_batches);
    printf("predicted, for a step of %d micro-batches:\n", a.micro_batches);
    for (int i = 0; i < 2 * a.gbit_count * a.faster_count; i++) {
        a.tree = i % 2;
        a.gbit = a.gbits[i / 2 % a.gbit_count];
        a.faster = a.fasters[i / 2 / a.gbit_count];
        print_all(&a, &c, &w.program, csv);
    }
    if (csv && fclose(csv) != 0)
        die("cannot write the CSV file");
    free(c.stored);
    free(c.sum);
    workload_close(&w);
    return 0;
}
