/* What the machine can do: the two numbers under the roofline. Each function does a known amount of work on the threads
 * of the context; the caller takes the time. */
#include "hfreg/kernel.h"

#define EXPORT __attribute__((visibility("default")))
#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif
#define LANES (VECTOR_BYTES / 4)
#define CHAINS 12 /* independent, so that the latency of one is hidden by the others */

typedef float vector __attribute__((vector_size(VECTOR_BYTES), aligned(4)));

typedef struct {
    int64_t iterations;
    const float *a, *b;
    float *c;
    int64_t elements, repeats;
    int tasks;
    float sink[64];
} work;

static int fma_task(void *context, int index, uint8_t *closure) {
    (void)context;
    work *w = (work *)closure;
    vector sums[CHAINS], x, y;
    for (int l = 0; l < LANES; l++) x[l] = 0.999f, y[l] = 0.001f;
    for (int i = 0; i < CHAINS; i++) sums[i] = x * (float)i;
    for (int64_t n = 0; n < w->iterations; n++)
#pragma clang loop unroll(full)
        for (int i = 0; i < CHAINS; i++) sums[i] = sums[i] * x + y;
    vector total = sums[0];
    for (int i = 1; i < CHAINS; i++) total += sums[i];
    w->sink[index & 63] = total[0];
    return 0;
}

/* Fused multiply-adds on every task; returns the floating-point operations done. */
EXPORT double hfreg_peak_fma(hfreg_context *context, int32_t tasks, int64_t iterations) {
    work w = {.iterations = iterations};
    context->parallel_for(context, fma_task, 0, tasks, (uint8_t *)&w);
    return 2.0 * LANES * CHAINS * (double)iterations * tasks;
}

static int add_task(void *context, int index, uint8_t *closure) {
    (void)context;
    work *w = (work *)closure;
    int64_t first = w->elements * index / w->tasks, end = w->elements * (index + 1) / w->tasks;
    for (int64_t n = 0; n < w->repeats; n++) {
        for (int64_t i = first; i < end; i++) w->c[i] = w->a[i] + w->b[i];
        __asm__ volatile("" ::: "memory"); /* every repetition happens */
    }
    return 0;
}

/* c = a + b with plain stores, again and again; returns the bytes moved: two loads and a store for each element. */
EXPORT double hfreg_peak_stream(hfreg_context *context, int32_t tasks, const float *a, const float *b, float *c,
                                int64_t elements, int64_t repeats) {
    work w = {.a = a, .b = b, .c = c, .elements = elements, .repeats = repeats, .tasks = tasks};
    context->parallel_for(context, add_task, 0, tasks, (uint8_t *)&w);
    return 12.0 * (double)elements * (double)repeats;
}
