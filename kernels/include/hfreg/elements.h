/* Element types in memory, and their conversions from and to float: exact one way, rounded to nearest even the other.
 * A C kernel reads and writes elements of a type variable V with HFREG_V_LOAD(element) and HFREG_V_STORE(number). */
#ifndef HFREG_ELEMENTS_H
#define HFREG_ELEMENTS_H
#include <stdint.h>

typedef float hfreg_float32;
static inline float hfreg_load_float32(hfreg_float32 x) { return x; }
static inline hfreg_float32 hfreg_store_float32(float x) { return x; }

static inline uint32_t hfreg_bits(float x) {
    uint32_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float hfreg_from_bits(uint32_t bits) {
    float x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}

typedef uint16_t hfreg_bfloat16;
static inline float hfreg_load_bfloat16(hfreg_bfloat16 x) { return hfreg_from_bits((uint32_t)x << 16); }
static inline hfreg_bfloat16 hfreg_store_bfloat16(float x) {
    uint32_t bits = hfreg_bits(x), rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
    return (hfreg_bfloat16)((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded);
}

#if defined(__F16C__)
typedef _Float16 hfreg_float16;
static inline float hfreg_load_float16(hfreg_float16 x) { return (float)x; }
static inline hfreg_float16 hfreg_store_float16(float x) { return (hfreg_float16)x; }
#else
typedef uint16_t hfreg_float16;
/* The fields, moved into place, are too small by 2**112, the difference of the exponent biases. */
static inline float hfreg_load_float16(hfreg_float16 x) {
    uint32_t fields = (x & 0x7fffu) << 13, finite = hfreg_bits(hfreg_from_bits(fields) * 0x1p112f);
    uint32_t magnitude = (x & 0x7c00u) == 0x7c00u ? fields | 0x7f800000u : finite;
    return hfreg_from_bits(magnitude | (uint32_t)(x & 0x8000u) << 16);
}
/* Normal results are rounded by an addition that carries into the exponent; for subnormal ones, adding 0.5 leaves the
 * result in the low bits, since the unit in the last place of 0.5 is the smallest subnormal. */
static inline hfreg_float16 hfreg_store_float16(float x) {
    uint32_t bits = hfreg_bits(x), magnitude = bits & 0x7fffffffu;
    uint32_t normal = (magnitude - (112u << 23) + 0xfffu + (magnitude >> 13 & 1)) >> 13;
    uint32_t subnormal = hfreg_bits(hfreg_from_bits(magnitude) + 0.5f) - 0x3f000000u;
    uint32_t rounded = magnitude < 0x38800000u ? subnormal : normal;
    rounded = magnitude >= 0x477ff000u ? 0x7c00u : rounded;
    rounded = magnitude > 0x7f800000u ? 0x7e00u : rounded;
    return (hfreg_float16)(rounded | (bits >> 16 & 0x8000u));
}
#endif

#endif
