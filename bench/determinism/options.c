/* The command line. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "bench/determinism/determinism.h"

static void usage(void) {
    fputs(
        "Usage: determinism [--model gpt2|resnet50] [--size small|full] [--steps N]\n"
        "                   [--profiles A,B,...] [--pairs] [--ways 12345] [--bits N]\n"
        "                   [--threads N] [--batch N] [--sequence N] [--calibration N]\n"
        "                   [--interval N] [--memory GB] [--cpu] [--minutes N] [--out DIR] "
        "[--all]\n"
        "       determinism --render DIR [--all]\n"
        "Trains one job in every way and compares time, memory, logs and states. Profiles stand\n"
        "for devices and are simulated; default: the first two (full) or all (small).\n"
        "A profile cuda is the first CUDA device, where there is one.\n"
        "--pairs: an auditor on every profile for a trainer on every profile.\n"
        "--ways: of (1) free f32, (2) free f64, (3) trainers, (4) auditors, (5) order fixed; s: "
        "no\n"
        "        logs of symbols. The first of (1) and (2) always run.\n"
        "--bits: to round to, default 32. --calibration: steps that thresholds of symbols are\n"
        "        measured in, default 1 (full) or 4 (small).\n"
        "--interval: steps between checkpoints, default 1 (full) or 10 (small): a way runs so "
        "many\n"
        "        in its turn, hashes its state (untimed), and waits for its log to be on disk.\n"
        "--memory: of all processes together, default 12 GB; as many ways as fit live at a time.\n"
        "--cpu: times of the processor, all threads added up, and not of the clock: for busy "
        "machines.\n"
        "--minutes: after that many no more groups of ways start; what ran is written after each.\n"
        "--out: where steps.csv, result.json and page.html go, default build/determinism.\n"
        "--all: print every way, and not only one of each kind.\n"
        "--render: train nothing; write page.html of DIR again, from the result.json there.\n"
        "Example: determinism --model gpt2 --size small --steps 100 --pairs\n",
        stdout);
}

static void wrong(const char *option, const char *expected, const char *got) {
    fprintf(stderr, "determinism: %s must be %s, got \"%s\"\n", option, expected, got);
    exit(2);
}

static const char *one_of(const char *option, const char *text, const char *a, const char *b) {
    char expected[64];
    snprintf(expected, sizeof expected, "%s or %s", a, b);
    if (strcmp(text, a) != 0 && strcmp(text, b) != 0)
        wrong(option, expected, text);
    return text;
}

static long number(const char *option, const char *text, long low, long high) {
    char *end;
    char expected[64];
    const long value = strtol(text, &end, 10);
    snprintf(expected, sizeof expected, "%ld..%ld", low, high);
    if (*text == 0 || *end != 0 || value < low || value > high)
        wrong(option, expected, text);
    return value;
}

static void parse_profiles(char *list) {
    for (char *name = strtok(list, ","); name; name = strtok(NULL, ",")) {
        const ro_profile *p = ro_profile_by_name(name);
        if (bench.profiles == PROFILES_MAX || !p) {
            fprintf(stderr, "determinism: no profile \"%s\"; there are", name);
            for (int i = 0; ro_profile_at(i); i++)
                fprintf(stderr, " %s", ro_profile_at(i)->name);
            fprintf(stderr, " and cuda\n");
            exit(2);
        }
        bench.profile[bench.profiles++] = p;
    }
}

const char *parse_options(int argc, char **argv) {
    const char *render = NULL;
    static const struct option options[] = {{"model", required_argument, NULL, 'm'},
                                            {"size", required_argument, NULL, 's'},
                                            {"steps", required_argument, NULL, 'n'},
                                            {"profiles", required_argument, NULL, 'p'},
                                            {"pairs", no_argument, NULL, 'a'},
                                            {"bits", required_argument, NULL, 'b'},
                                            {"threads", required_argument, NULL, 't'},
                                            {"batch", required_argument, NULL, 'B'},
                                            {"sequence", required_argument, NULL, 'T'},
                                            {"out", required_argument, NULL, 'o'},
                                            {"ways", required_argument, NULL, 'w'},
                                            {"memory", required_argument, NULL, 'M'},
                                            {"calibration", required_argument, NULL, 'c'},
                                            {"interval", required_argument, NULL, 'i'},
                                            {"cpu", no_argument, NULL, 'u'},
                                            {"minutes", required_argument, NULL, 'l'},
                                            {"all", no_argument, NULL, 'A'},
                                            {"render", required_argument, NULL, 'r'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (o) {
        case 'm': bench.model = one_of("--model", optarg, "gpt2", "resnet50"); break;
        case 's': bench.size = one_of("--size", optarg, "small", "full"); break;
        case 'n': bench.steps = number("--steps", optarg, 1, STEPS_MAX - 1); break;
        case 'p': parse_profiles(optarg); break;
        case 'a': bench.pairs = true; break;
        case 'l': bench.minutes = number("--minutes", optarg, 1, 10000); break;
        case 'i': bench.interval = number("--interval", optarg, 1, STEPS_MAX - 1); break;
        case 'u': bench.cpu = true; break;
        case 'b': bench.bits = (int32_t)number("--bits", optarg, 16, 32); break;
        case 't': bench.threads = number("--threads", optarg, 0, 1024); break;
        case 'B': bench.batch = number("--batch", optarg, 1, 1024); break;
        case 'T': bench.sequence = number("--sequence", optarg, 1, 1024); break;
        case 'w':
            bench.ways = optarg;
            if (strspn(optarg, "12345s") != strlen(optarg))
                wrong("--ways", "of the letters 12345s", optarg);
            break;
        case 'M': bench.memory = 1e9 * (double)number("--memory", optarg, 1, 1000); break;
        case 'c': bench.calibration = number("--calibration", optarg, 1, STEPS_MAX - 1); break;
        case 'o': bench.out = optarg; break;
        case 'A': bench.all = true; break;
        case 'r': render = optarg; break;
        case 'h': usage(); exit(0);
        default: exit(2); /* getopt has printed what was wrong */
        }
    }
    if (optind != argc) {
        fprintf(stderr, "determinism: no arguments expected, got \"%s\"\n", argv[optind]);
        exit(2);
    }
    return render;
}
