/* What the build tells the body of a Halide kernel about the compiled functions. */
#ifndef HFREG_HALIDE_BODY_H
#define HFREG_HALIDE_BODY_H
#include "hfreg/body.h"

/* A type as halide_buffer_t has it: 0 int, 1 uint, 2 float. Memory may be typed otherwise than the operator's tensors:
 * bfloat16 is 16-bit integers here. */
typedef struct {
    uint8_t code, bits;
    uint16_t lanes;
} hfreg_halide_type;

typedef struct {
    uint8_t attribute; /* index into the kernel's attributes */
    uint8_t is_real;   /* passed as float, else as int32_t */
} hfreg_halide_scalar;

/* One of the compiled functions, each of which serves some shapes. */
typedef struct {
    int (*run)(void **arguments); /* takes pointers to its arguments */
    uint8_t touches_output;       /* takes the output once more, as an input, behind the scalars */
} hfreg_halide_variant;

extern const hfreg_halide_variant hfreg_halide_variants[];

/* The function for some views. */
int hfreg_halide_choose(const hfreg_view *views);

extern const hfreg_halide_type hfreg_halide_types[]; /* one for each tensor */
extern const hfreg_halide_scalar hfreg_halide_scalars[];
extern const uint8_t hfreg_halide_scalar_count;

#endif
