// A linear layer with GELU and a softmax over its outputs, in C++11. Prints a hash of the result's
// bits: the same on every machine, whatever the number of threads and REPOPS_CPU.
#include <repops/fused.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <vector>

namespace {

struct Destroy {
    void operator()(ro_ctx *ctx) const {
        ro_ctx_destroy(ctx);
    }
};
using Context = std::unique_ptr<ro_ctx, Destroy>;

Context create(int threads) {
    ro_options options = {};
    options.size = sizeof options;
    options.threads = threads;
    ro_ctx *ctx = nullptr;
    if (ro_ctx_create(&options, &ctx) != RO_OK)
        throw std::runtime_error(ro_ctx_error(nullptr));
    return Context(ctx);
}

void check(const Context &ctx, ro_status status) {
    if (status != RO_OK)
        throw std::runtime_error(ro_ctx_error(ctx.get()));
}

// Normal numbers of one stream of Philox, by repops's own generator.
std::vector<float> normal(const Context &ctx, int64_t stream, int64_t count) {
    std::vector<float> out(static_cast<size_t>(count));
    ro_call call = {};
    call.op = RO_OP_NORMAL;
    call.attr[0] = 1; // seed
    call.attr[1] = stream;
    call.attr[2] = ro_attr_f32(0.0f); // mean
    call.attr[3] = ro_attr_f32(0.1f); // standard deviation
    call.output = {RO_F32, 1, {count}};
    char why[256];
    if (ro_infer(&call, why, sizeof why) != RO_OK)
        throw std::runtime_error(why);
    check(ctx, ro_run(ctx.get(), &call, nullptr, out.data()));
    return out;
}

uint64_t fnv1a(const std::vector<float> &values) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (float value : values) {
        union {
            float f;
            uint32_t u;
        } bits = {value};
        for (int shift = 0; shift < 32; shift += 8)
            hash = (hash ^ (bits.u >> shift & 0xff)) * 0x100000001b3u;
    }
    return hash;
}

} // namespace

int main() {
    try {
        const int64_t rows = 32, in = 300, out = 200;
        const Context ctx = create(0);
        const std::vector<float> x = normal(ctx, 0, rows * in), w = normal(ctx, 1, in * out),
                                 bias = normal(ctx, 2, out);
        std::vector<float> y(static_cast<size_t>(rows * out)), p(y.size()), m(rows), l(rows);
        ro_linear_layer layer = {};
        layer.size = sizeof layer;
        layer.rows = rows, layer.in = in, layer.out = out;
        layer.activation = RO_ACTIVATION_GELU;
        check(ctx,
              ro_linear(ctx.get(), &layer, x.data(), w.data(), bias.data(), nullptr, y.data()));
        check(ctx, ro_softmax(ctx.get(), rows, out, y.data(), p.data(), m.data(), l.data()));
        std::printf("%016llx\n", static_cast<unsigned long long>(fnv1a(p)));
        return 0;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "layer: %s\n", error.what());
        return 1;
    }
}
