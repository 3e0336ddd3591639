/* The part of DLPack's C interface that kernels use: the layout of DLTensor (DLPack 1.0, stable since 0.2).
 * Written from the specification; binary compatible with the official header. */
#ifndef HFREG_DLPACK_H
#define HFREG_DLPACK_H
#include <stdint.h>

typedef struct {
    int32_t device_type; /* 1 is the CPU */
    int32_t device_id;
} DLDevice;

typedef struct {
    uint8_t code; /* 0 int, 1 uint, 2 float, 4 bfloat, 6 bool */
    uint8_t bits;
    uint16_t lanes; /* 1 */
} DLDataType;

typedef struct {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL means compact and row-major */
    uint64_t byte_offset;
} DLTensor;

#endif
