/* Softmax along the last axis of [outer, n].
 *
 * Three passes over a row, which stays in the first-level cache: the largest value, then the exponentials and their sum,
 * then the division. A 16-bit row is widened into scratch memory first and rounded once, at the end. */
#include "hfreg/body.h"

#define LANES 16 /* of a vector; the compiler splits it where registers are shorter */
#define TASK_ELEMENTS 16384

typedef float vector __attribute__((vector_size(4 * LANES), aligned(4)));
typedef uint32_t bits __attribute__((vector_size(4 * LANES), aligned(4)));

static vector spread(float x) { return x - (vector){0}; }

static vector choose(bits mask, vector yes, vector no) { return (vector)((mask & (bits)yes) | (~mask & (bits)no)); }

/* The larger value; NaN if either is. */
static vector larger(vector a, vector b) { return choose((bits)((b > a) | (b != b)), b, a); }

/* exp(x) for x <= 0 or NaN, to 1.2 ULP; results below 2**-126 are 0. x = k * ln 2 + r, exp(r) by a polynomial (the
 * constants of hfreg.lang.floats), and k added to the exponent's bits. */
static vector exp_nonpositive(vector x) {
    const float round = 0x1.8p23f; /* adding it leaves the nearest integer in the low bits */
    vector shifted = x * 1.44269502f + round, k = shifted - round;
    vector r = x - k * 0.693145752f - k * 1.42860677e-06f;
    vector p = spread(0.00138214696f);
    p = p * r + 0.00836866256f;
    p = p * r + 0.0416682549f;
    p = p * r + 0.166665211f;
    p = p * r + 0.49999994f;
    p = p * (r * r) + r + 1.0f;
    vector value = (vector)((bits)p + ((bits)shifted << 23));
    bits is_normal = (bits)(x > -87.3365479f), is_nan = (bits)(x != x);
    return (vector)(((bits)value & is_normal) | ((bits)x & is_nan));
}

static vector load(const float *row, int64_t at, int64_t n, float otherwise) {
    if (at + LANES <= n) return *(const vector *)(row + at);
    vector v = spread(otherwise);
    for (int64_t i = at; i < n; i++) v[i - at] = row[i];
    return v;
}

static void store(float *row, int64_t at, int64_t n, vector v) {
    if (at + LANES <= n) *(vector *)(row + at) = v;
    else
        for (int64_t i = at; i < n; i++) row[i] = v[i - at];
}

/* Replace the values of a row by the exponentials of their distance to the largest; the inverse of the sum. */
static float exponentials(const float *row, float *out, int64_t n) {
    vector most = spread(-__builtin_inff()), sum = spread(0);
    for (int64_t i = 0; i < n; i += LANES) most = larger(most, load(row, i, n, -__builtin_inff()));
    for (int half = LANES / 2; half; half /= 2)
        for (int i = 0; i < half; i++) most[i] = most[i + half] > most[i] || most[i + half] != most[i + half] ? most[i + half] : most[i];
    for (int64_t i = 0; i < n; i += LANES) {
        vector e = exp_nonpositive(load(row, i, n, -__builtin_inff()) - spread(most[0]));
        store(out, i, n, e);
        if (i + LANES <= n) sum += e;
        else
            for (int64_t j = i; j < n; j++) sum[j - i] += e[j - i];
    }
    for (int half = LANES / 2; half; half /= 2)
        for (int i = 0; i < half; i++) sum[i] += sum[i + half];
    return 1.0f / sum[0];
}

typedef struct {
    hfreg_context *context;
    const hfreg_view *x, *y;
    int64_t rows; /* of one task */
} work;

static void run_row(const HFREG_T *x, HFREG_T *y, float *scratch, int64_t n) {
#ifdef HFREG_T_IS_float32
    (void)scratch;
    float inverse = exponentials(x, y, n);
    for (int64_t i = 0; i < n; i++) y[i] *= inverse;
#else
    for (int64_t i = 0; i < n; i++) scratch[i] = HFREG_T_LOAD(x[i]);
    float inverse = exponentials(scratch, scratch, n);
    for (int64_t i = 0; i < n; i++) y[i] = HFREG_T_STORE(scratch[i] * inverse);
#endif
}

static int run_rows(void *context, int index, uint8_t *closure) {
    const work *w = (const work *)closure;
    hfreg_context *c = context;
    int64_t n = w->x->extent[1], first = index * w->rows, end = first + w->rows;
    if (end > w->x->extent[0]) end = w->x->extent[0];
    float *scratch = 0;
#ifndef HFREG_T_IS_float32
    scratch = c->allocate(c, (uint64_t)n * sizeof(float));
    if (!scratch) {
        c->report(c, "softmax: out of memory");
        return 1;
    }
#endif
    for (int64_t i = first; i < end; i++)
        run_row((const HFREG_T *)w->x->data + i * w->x->stride[0], (HFREG_T *)w->y->data + i * w->y->stride[0], scratch, n);
    if (scratch) c->release(c, scratch);
    return 0;
}

int32_t hfreg_body(hfreg_context *context, const hfreg_view *views, const hfreg_value *attributes) {
    (void)attributes;
    int64_t outer = views[0].extent[0], n = views[0].extent[1];
    work w = {context, &views[0], &views[1], TASK_ELEMENTS / n > 1 ? TASK_ELEMENTS / n : 1};
    return context->parallel_for(context, run_rows, 0, (int)((outer + w.rows - 1) / w.rows), (uint8_t *)&w);
}
