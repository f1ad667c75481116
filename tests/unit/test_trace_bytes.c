/* Memory for the records of a step: it is exactly what the program's estimate says, and a run that
 * needs more than the limit is refused before it begins. */
#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/small_models.h"
#include "verde/exec/estimate.h"
#include "verde/exec/run.h"

static uint8_t text[1000];
static const void *const data[] = {text};

static void expect_bytes(vd_model_kind kind, int64_t micro_batches) {
    vd_program p = program_of(kind, micro_batches);
    vd_exec exec = {.program = &p, .data = data};
    vd_records records;
    vd_state state;
    vd_err err = {0};
    cr_assert(ro_ctx_create(&(ro_options){.size = sizeof(ro_options), .threads = 1}, &exec.ro) ==
              RO_OK);
    cr_assert(vd_exec_init(&exec, NULL, &state, &err) == VD_OK, "%s", err.text);
    cr_assert(vd_trace(&exec, &state, &records, &err) == VD_OK, "%s", err.text);
    const uint64_t places = records.count * sizeof *records.end;
    cr_expect(records.count == p.step.node_count);
    cr_expect(records.bytes.size + places ==
              vd_records_bytes(records.count, vd_inputs_meant(&p.step)));
    cr_expect(records.bytes.capacity == records.bytes.size && records.capacity == records.count);
    vd_records_free(&records);
    vd_state_free(&state);
    ro_ctx_destroy(exec.ro);
    vd_program_free(&p);
}

Test(trace_bytes, records_take_what_is_reckoned) {
    for (int k = 0; k < KINDS; k++)
        for (int64_t micro_batches = 1; micro_batches <= 5; micro_batches += 2)
            expect_bytes(kinds[k], micro_batches);
}

/* A provider with too little memory to answer must not be given the job. */
Test(trace_bytes, a_job_is_judged_by_what_answers_take) {
    vd_program p = program_of(VD_MODEL_GPT2, 4096);
    uint64_t memory;
    cr_assert(vd_estimate_memory(&p, &memory, NULL) == VD_OK);
    cr_expect(memory > vd_records_bytes(p.step.node_count, vd_inputs_meant(&p.step)) +
                           UINT64_C(128) * p.step.node_count);
    vd_program_free(&p);
}

/* A step that stands for nearly as many nodes as a graph may have. */
static vd_program largest(int64_t *micro_batches) {
    vd_program p = program_of(VD_MODEL_LLAMA, 1000);
    const int64_t each = p.step.node_count / 1000 + 1;
    vd_err err = {0};
    cr_expect(vd_trace_fits(&p, &err) == VD_OK, "%s", err.text);
    vd_program_free(&p);
    *micro_batches = VD_UNROLLED_MAX / each;
    p = program_of(VD_MODEL_LLAMA, *micro_batches);
    cr_assert(vd_records_bytes(p.step.node_count, vd_inputs_meant(&p.step)) > VD_TRACE_BYTES_MAX);
    cr_expect(vd_trace_fits(&p, &err) == VD_ERR_USAGE);
    return p;
}

Test(trace_bytes, a_run_beyond_the_limit_is_refused_before_it_begins) {
    int64_t micro_batches;
    vd_program p = largest(&micro_batches);
    char dir[] = "/tmp/trace-bytes-XXXXXX", program[64];
    vd_run_result result;
    vd_err err = {0};
    vd_exec exec = {.program = &p, .data = data};
    cr_assert(mkdtemp(dir));
    const vd_run_options options = {.exec = &exec, .dir = dir};
    cr_expect(vd_run(&options, &result, &err) == VD_ERR_USAGE);
    cr_expect(strstr(err.text, "the records of a step's ") && strstr(err.text, "expected 8.0"),
              "%s", err.text);
    snprintf(program, sizeof program, "%s/program", dir);
    cr_expect(access(program, F_OK) != 0, "%lld micro-batches leave a program",
              (long long)micro_batches);
    cr_expect(rmdir(dir) == 0);
    vd_program_free(&p);
}
