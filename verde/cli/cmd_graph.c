/* This file is `verde graph`, which prints the program that a job becomes. */
#include <stdlib.h>
#include <string.h>

#include "verde/cli/cli.h"
#include "verde/exec/exec.h"

typedef struct {
    bool dot, init, fused;
    const json_t *places; /* source lines of the step's nodes; NULL: unknown */
    uint32_t inserted;    /* nodes that verde put before the job's own; they have no source line */
} graph_options;

static void print_summary(const vd_program *p, const vd_hash *hash, const vd_hash *structure) {
    char hex[2 * VD_HASH_SIZE + 1], same[2 * VD_HASH_SIZE + 1];
    vd_hex(hash->b, VD_HASH_SIZE, hex);
    vd_hex(structure->b, VD_HASH_SIZE, same);
    printf("# program %s\n# structure %s\n# %u nodes at initialisation, %u per step, %u state "
           "leaves\n",
           hex, same, p->init.node_count, p->step.node_count, p->leaf_count);
    vd_print_ranges(p, "# data:");
}

/* The text comes from a file: only printable ASCII reaches the terminal. */
static void print_place(const char *place) {
    fputs("  # ", stdout);
    for (; *place; place++)
        putchar(*place >= ' ' && *place <= '~' ? *place : '?');
}

/* Marks a node that a fused function computes, that shares memory, or that is left out. */
static void print_run(const vd_node_run *run) {
    if (run->how == VD_RUNS_FUSED)
        printf("  @ %s %u", run->function, run->number);
    else if (run->how != VD_RUNS_ITSELF)
        printf("  @ %s", run->how == VD_RUNS_SHARED ? "shared" : "left out");
}

static void print_counts(const vd_node_run *run, uint32_t nodes) {
    uint32_t count[VD_RUNS_NOT + 1] = {0}, functions = 0;
    for (uint32_t i = 0; i < nodes; i++) {
        count[run[i].how]++;
        if (run[i].how == VD_RUNS_FUSED && run[i].number >= functions)
            functions = run[i].number + 1;
    }
    printf("# %u functions run %u nodes; %u share memory, %u are left out, %u run by themselves\n",
           functions, count[VD_RUNS_FUSED], count[VD_RUNS_SHARED], count[VD_RUNS_NOT],
           count[VD_RUNS_ITSELF]);
}

/* Prints `text`, which has a line for each node and then others, with marks and source lines added.
 * `run` may be NULL. */
static void print_lines(const vd_buf *text, uint32_t nodes, const graph_options *o,
                        const vd_node_run *run) {
    const char *at = (const char *)text->data, *end = at + text->size;
    for (uint32_t i = 0; at < end; i++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        const size_t length = (size_t)((stop ? stop : end) - at);
        const bool told = !o->init && i < nodes && i >= o->inserted;
        const json_t *at_node = told ? json_array_get(o->places, i - o->inserted) : NULL;
        const char *place = json_string_value(at_node);
        fwrite(at, 1, length, stdout);
        if (run && i < nodes)
            print_run(&run[i]);
        if (place && *place)
            print_place(place);
        putchar('\n');
        at += length + 1;
    }
}

static vd_status print_text(const vd_program *p, const graph_options *o, const vd_buf *text,
                            vd_err *err) {
    const vd_graph *graph = o->init ? &p->init : &p->step;
    vd_node_run *run = o->fused ? calloc((size_t)graph->node_count + 1, sizeof *run) : NULL;
    vd_status status = VD_OK;
    if (o->fused)
        status = run ? vd_exec_runs(p, graph, run, err)
                     : vd_fail(err, VD_ERR_LOCAL, "out of memory for the plan");
    if (status == VD_OK && run)
        print_counts(run, graph->node_count);
    if (status == VD_OK)
        print_lines(text, graph->node_count, o, run);
    free(run);
    return status;
}

static vd_exit print_graph(const vd_program *p, const graph_options *o, bool json, vd_err *err) {
    const vd_graph *graph = o->init ? &p->init : &p->step;
    vd_buf out = {0};
    vd_hash hash, structure;
    if (vd_program_hash(p, &hash, err) != VD_OK ||
        vd_program_structure(p, &structure, err) != VD_OK)
        return vd_report(err);
    if (json) {
        vd_print_json(json_pack("{so so sI sI sI so}", "program", vd_hash_text(&hash), "structure",
                                vd_hash_text(&structure), "init_nodes",
                                (json_int_t)p->init.node_count, "step_nodes",
                                (json_int_t)p->step.node_count, "state_leaves",
                                (json_int_t)p->leaf_count, "ranges", vd_ranges_json(p)));
        return VD_EXIT_OK;
    }
    if (o->dot)
        vd_graph_dot(p, graph, &out);
    else
        vd_graph_text(p, graph, &out);
    vd_status status =
        vd_buf_ok(&out) ? VD_OK : vd_fail(err, VD_ERR_LOCAL, "out of memory for the graph's text");
    if (!o->dot)
        print_summary(p, &hash, &structure);
    if (status == VD_OK && o->dot)
        fwrite(out.data, 1, out.size, stdout);
    else if (status == VD_OK)
        status = print_text(p, o, &out, err);
    vd_buf_free(&out);
    return status == VD_OK ? VD_EXIT_OK : vd_report(err);
}

static graph_options how;
static const char *prompt;
static vd_common common;

static vd_exit graph(int argc, char **argv) {
    json_t *places = NULL;
    vd_exit code;
    if (!vd_take_options(&vd_cmd_graph, argc, argv, &code))
        return code;
    if (argc - optind != 1) {
        fprintf(stderr, "verde: graph takes one job file, got %d arguments\n", argc - optind);
        return VD_EXIT_USAGE;
    }
    if (how.fused && (how.dot || common.json)) {
        fprintf(stderr, "verde: --fused goes with the graph as text, not with --dot or --json\n");
        return VD_EXIT_USAGE;
    }
    vd_err err = {0};
    vd_loaded loaded = {.bare = true, .prompt = prompt};
    vd_status status = vd_load_job(argv[optind], &loaded, &err);
    if (status == VD_OK && loaded.job.program)
        status = vd_load_node_places(&loaded, &places, &err);
    how.inserted = loaded.start.inserted;
    how.places = json_object_get(places, "step");
    code =
        status == VD_OK ? print_graph(&loaded.program, &how, common.json, &err) : vd_report(&err);
    json_decref(places);
    vd_loaded_free(&loaded);
    return code;
}

static const vd_option options[] = {
    {"  --dot            for Graphviz\n", &how.dot},
    {"  --init           the graph of initialisation instead\n", &how.init},
    {"  --fused          how each node runs: as part of a function of several nodes, in the "
     "memory\n"
     "                   of what it reads, or not at all; one without a mark runs by itself\n",
     &how.fused},
    {"  --prompt KEY     of a job with prompts: the program of this one\n", &prompt},
    {"  --json           only the program's hash and sizes, as a JSON object\n", &common.json},
    {"  --help, -h       this text\n"},
    VD_HIDDEN_ROWS(common),
    {NULL}};

const vd_command vd_cmd_graph = {
    "graph",
    "print a job's graph",
    "Usage: verde graph JOB [options]\n\n"
    "Prints the graph of one training step, a node per line, with the program's hash; of a step\n"
    "that was captured, with file and line of the code that it comes from.\n\n",
    options,
    "\n"
    "Examples:\n"
    "  verde graph models/jobs/toy.yaml\n"
    "  verde graph models/jobs/mlp.yaml --dot | dot -Tsvg > mlp.svg\n" VD_EXIT_HELP,
    graph};
