/* The table of the backend `log`, and the list of all backends. */
#include "verde/log/emitter.h"

static bool wants(const vd_program *program) {
    return program->rounding.bits != 0;
}

static bool possible(const vd_program *program, const vd_graph *graph, uint32_t node, ro_bounded y,
                     uint32_t word) {
    const vd_possible v = vd_possible_of(y, vd_node_bits(program, graph, node));
    return vd_possible_has(&v, word);
}

const vd_backend vd_backend_log = {.name = "log",
                                   .kernels = "free kernels",
                                   .emits = "rounding logs",
                                   .wants = wants,
                                   .possible = possible,
                                   .members = vd_log_members,
                                   .read = vd_log_read_json,
                                   .write = vd_log_write_json,
                                   .ran_on = vd_log_ran_on,
                                   .allows = vd_log_allows,
                                   .choose = vd_log_choose,
                                   .goes_on = vd_log_goes_on,
                                   .open = vd_log_open_run,
                                   .begin = vd_log_begin_step,
                                   .end = vd_log_end_step,
                                   .checkpoint = vd_log_checkpoint,
                                   .agree = vd_log_agree,
                                   .close = vd_log_close_run,
                                   .check = vd_log_check_emitted,
                                   .compare = vd_log_compare_emitted,
                                   .open_again = vd_log_open_again,
                                   .served = vd_log_served};

const vd_backend *const vd_backends[] = {&vd_backend_log, NULL};
