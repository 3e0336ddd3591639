/* The body of a kernel that Halide compiled: views become halide_buffer_t, and Halide's runtime calls go to the
 * caller's context. Written against the published layout of halide_buffer_t (HalideRuntime.h, Halide 21). */
#include "frontend.h"
#include "halide_body.h"
#include <stddef.h>

typedef struct {
    int32_t min, extent, stride;
    uint32_t flags;
} halide_dimension;

typedef struct {
    uint64_t device;
    const void *device_interface;
    uint8_t *host;
    uint64_t flags;
    hfreg_halide_type type;
    int32_t dimensions;
    halide_dimension *dim;
    void *padding;
} halide_buffer;

#define MAX_SCALARS 32

int32_t hfreg_body(hfreg_context *context, const hfreg_view *views, const hfreg_value *attributes) {
    const hfreg_signature *s = &hfreg_kernel_signature;
    halide_dimension dims[HFREG_MAX_TENSORS][HFREG_MAX_VIEW];
    halide_buffer buffers[HFREG_MAX_TENSORS];
    union {
        int32_t integer;
        float real;
    } scalars[MAX_SCALARS];
    void *arguments[2 + HFREG_MAX_TENSORS + MAX_SCALARS];
    const hfreg_halide_variant *variant = &hfreg_halide_variants[hfreg_halide_choose(views)];
    int count = 0, scalars_done = 0;
    arguments[count++] = &context;
    for (int t = 0; t < s->tensor_count; t++) {
        const hfreg_view *v = &views[t];
        for (int d = 0; d < v->rank; d++) {
            int axis = v->rank - 1 - d;
            dims[t][d] = (halide_dimension){0, (int32_t)v->extent[axis], (int32_t)v->stride[axis], 0};
        }
        buffers[t] = (halide_buffer){0, 0, v->data, 0, hfreg_halide_types[t], v->rank, dims[t], 0};
        if (s->tensors[t].flags & HFREG_IS_OUTPUT && !scalars_done) { /* Halide's order: inputs, scalars, outputs */
            scalars_done = 1;
            for (int i = 0; i < hfreg_halide_scalar_count; i++) {
                const hfreg_value *value = &attributes[hfreg_halide_scalars[i].attribute];
                if (hfreg_halide_scalars[i].is_real) scalars[i].real = (float)value->real;
                else scalars[i].integer = (int32_t)value->integer;
                arguments[count++] = &scalars[i];
            }
            if (variant->touches_output) arguments[count++] = &buffers[t];
        }
        arguments[count++] = &buffers[t];
    }
    return variant->run(arguments);
}

void *halide_malloc(void *context, size_t bytes) {
    hfreg_context *c = context;
    return c->allocate(c, bytes);
}

void halide_free(void *context, void *block) {
    hfreg_context *c = context;
    c->release(c, block);
}

int halide_do_par_for(void *context, hfreg_task task, int first, int count, uint8_t *closure) {
    hfreg_context *c = context;
    return c->parallel_for(c, task, first, count, closure);
}

void halide_error(void *context, const char *text) {
    hfreg_context *c = context;
    c->report(c, text);
}

static int refuse(void *context, const char *text) {
    halide_error(context, text);
    return -1;
}

/* What the front end does not see: a body whose intermediate values need 2^31 bytes or more. */
static int too_large(void *context) {
    return refuse(context, "an intermediate result needs 2^31 bytes or more, which this kernel does not support");
}

int halide_error_buffer_allocation_too_large(void *context, const char *buffer, uint64_t size, uint64_t max) {
    (void)buffer, (void)size, (void)max;
    return too_large(context);
}

int halide_error_buffer_extents_too_large(void *context, const char *buffer, int64_t size, int64_t max) {
    (void)buffer, (void)size, (void)max;
    return too_large(context);
}

int halide_error_out_of_memory(void *context) { return refuse(context, "out of memory"); }

/* The checks that compiled code makes of its own arguments. The front end has made sure that none can fail; if one
 * does, the schedule is wrong, and the message says which check it was. */
typedef const char *text;
#define CHECK(name, ...)                                                                           \
    int halide_error_##name(void *context, __VA_ARGS__) {                                          \
        return refuse(context, "internal error of the kernel: " #name);                    \
    }
#pragma clang diagnostic ignored "-Wunused-parameter"
CHECK(access_out_of_bounds, text buffer, int d, int touched_min, int touched_max, int min, int max)
CHECK(bad_dimensions, text buffer, int32_t given, int32_t right)
CHECK(bad_fold, text func, text var, text loop)
CHECK(bad_type, text buffer, uint32_t given, uint32_t right)
CHECK(buffer_argument_is_null, text buffer)
CHECK(buffer_extents_negative, text buffer, int d, int extent)
CHECK(constraint_violated, text var, int value, text constrained, int right)
CHECK(constraints_make_required_region_smaller, text buffer, int d, int min, int extent, int required_min, int required)
CHECK(device_dirty_with_no_device_support, text buffer)
CHECK(explicit_bounds_too_small, text func, text var, int min, int max, int required_min, int required_max)
CHECK(fold_factor_too_small, text func, text var, int factor, text loop, int required)
CHECK(host_is_null, text buffer)
CHECK(param_too_large_f64, text param, double value, double max)
CHECK(param_too_large_i64, text param, int64_t value, int64_t max)
CHECK(param_too_small_f64, text param, double value, double min)
CHECK(param_too_small_i64, text param, int64_t value, int64_t min)
CHECK(requirement_failed, text condition, text reason)
CHECK(specialize_fail, text reason)
CHECK(split_factor_not_positive, text func, text original, text outer, text inner, text factor, int value)
CHECK(storage_bound_too_small, text func, text var, int bound, int required)
CHECK(unaligned_host_ptr, text buffer, int alignment)

int halide_error_no_device_interface(void *context) { return refuse(context, "internal error: no device"); }
