/* This file is `verde calibrate`, which measures the thresholds of rounding symbols. */
#include <string.h>

#include "verde/cli/cli.h"
#include "verde/log/calibrate.h"
#include "verde/job/profile.h"
#include "verde/run/out_dir.h"

typedef struct {
    const char *out, *profile[2];
    long bits, steps;
    bool force;
    vd_common common;
} calibrate_options;

static void progress(void *user, int64_t done) {
    const calibrate_options *o = user;
    fprintf(stderr, "step %lld/%ld\n", (long long)done, o->steps);
}

static void print_counts(const vd_calibration *c) {
    printf("%-18s %12s %8s %10s  threshold\n", "operator", "elements", "apart", "largest");
    for (int op = 1; op < RO_OP_END; op++) {
        const vd_calibration_count *count = &c->count[op];
        if (count->elements)
            printf("%-18s %12llu %8llu %10.2e  %a\n", ro_op_describe(op)->name,
                   (unsigned long long)count->elements, (unsigned long long)count->apart,
                   count->largest, c->thresholds.of[op]);
    }
}

static void warn(const vd_calibration *c) {
    int few = 0;
    for (int op = 1; op < RO_OP_END; op++)
        few += c->count[op].elements && c->count[op].apart < VD_CALIBRATION_APART;
    if (few > 0)
        fprintf(stderr,
                "verde: warning: %d operators had fewer than %d elements that the devices round "
                "apart; their\nthresholds follow from the largest distance of an element's two "
                "values. More --steps make them\nsurer; --encoding calls needs no thresholds\n",
                few, VD_CALIBRATION_APART);
}

static json_t *counts_json(const vd_calibration *c) {
    json_t *all = json_object();
    for (int op = 1; op < RO_OP_END; op++) {
        const vd_calibration_count *count = &c->count[op];
        if (count->elements)
            json_object_set_new(all, ro_op_describe(op)->name,
                                json_pack("{sI sI sf sf}", "elements", (json_int_t)count->elements,
                                          "apart", (json_int_t)count->apart, "largest",
                                          count->largest, "threshold", c->thresholds.of[op]));
    }
    return all;
}

static vd_status find_profiles(const calibrate_options *o, ro_profile profile[2], vd_err *err) {
    vd_status status = vd_profile_find(o->profile[0], &profile[0], err);
    if (status == VD_OK)
        status = vd_profile_find(o->profile[1], &profile[1], err);
    if (status == VD_OK && memcmp(&profile[0].lanes, &profile[1].lanes,
                                  sizeof profile[0] - offsetof(ro_profile, lanes)) == 0)
        status = vd_fail(err, VD_ERR_USAGE,
                         "--profile %s and --against %s are the same device: nothing to measure",
                         o->profile[0], o->profile[1]);
    return status;
}

static vd_status calibrate(const char *job, calibrate_options *o, vd_loaded *loaded, vd_err *err) {
    static vd_calibration found;
    ro_profile profile[2];
    vd_status status = find_profiles(o, profile, err);
    if (status == VD_OK)
        status = vd_check_new(o->out, o->force, err);
    if (status == VD_OK)
        status = vd_load_job(job, loaded, err);
    if (status == VD_OK)
        status = vd_need_weights(loaded, err);
    if (status == VD_OK)
        status = vd_load_backend(loaded, &o->common, err);
    for (int i = 0; i < 2 && status == VD_OK; i++)
        status = vd_load_device(loaded, &profile[i], err);
    if (status == VD_OK)
        status = vd_calibrate(&loaded->exec, &profile[0], &profile[1], (int32_t)o->bits, o->steps,
                              progress, o, &found, err);
    if (status == VD_OK)
        status = vd_thresholds_save(o->out, &found.thresholds, err);
    if (status != VD_OK)
        return status;
    if (o->common.json)
        vd_print_json(json_pack("{ss so}", "thresholds", o->out, "operators", counts_json(&found)));
    else
        print_counts(&found);
    warn(&found);
    return VD_OK;
}

static calibrate_options given;

static vd_exit calibrate_job(int argc, char **argv) {
    given = (calibrate_options){
        .profile = {"sim-wide", "sim-deep"}, .bits = RO_ROUND_BITS_MAX, .steps = 3};
    vd_exit code;
    if (!vd_take_options(&vd_cmd_calibrate, argc, argv, &code))
        return code;
    if (argc - optind != 1 || !given.out) {
        fprintf(stderr, "verde: calibrate takes one job file and --out FILE\n");
        return VD_EXIT_USAGE;
    }
    vd_loaded loaded = {0};
    vd_err err = {0};
    vd_status status = calibrate(argv[optind], &given, &loaded, &err);
    vd_loaded_free(&loaded);
    return status == VD_OK ? VD_EXIT_OK : vd_report(&err);
}

static const vd_option options[] = {
    {"  --out FILE       where the thresholds go; must not exist yet\n", &given.out},
    {"  --force          overwrite FILE\n", &given.force},
    {"  --profile NAME   one device (default sim-wide)\n", &given.profile[0]},
    {"  --against NAME   the other (default sim-deep)\n", &given.profile[1]},
    {"  --bits N         rounded to, 16..32 (default 32)\n", &given.bits,
     .least = RO_ROUND_BITS_MIN, .most = RO_ROUND_BITS_MAX},
    {"  --steps N        1..1000 (default 3)\n", &given.steps, .least = 1, .most = 1000},
    VD_COMMON_ROWS(given.common),
    {NULL}};

const vd_command vd_cmd_calibrate = {
    "calibrate",
    "measure the thresholds of rounding symbols between two devices",
    "Usage: verde calibrate JOB --out FILE [options]\n\n"
    "Runs steps of the job on free kernels of two profiles, on the same inputs, and writes for "
    "each\n"
    "operator the largest threshold that marks every rounding in which they differ. The file is "
    "for\n"
    "`verde run --backend log --encoding symbols --thresholds FILE`.\n\n",
    options,
    "\n"
    "Example:\n"
    "  verde calibrate models/jobs/toy.yaml --out thresholds.txt\n" VD_EXIT_HELP,
    calibrate_job};
