/* What the build tells the body of a Halide kernel about the compiled function. */
#ifndef HFREG_HALIDE_BODY_H
#define HFREG_HALIDE_BODY_H
#include <stdint.h>

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

extern const hfreg_halide_type hfreg_halide_types[]; /* one for each tensor */
extern const hfreg_halide_scalar hfreg_halide_scalars[];
extern const uint8_t hfreg_halide_scalar_count;

#endif
