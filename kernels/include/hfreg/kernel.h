/* The C ABI of a kernel, version 1.
 *
 * A kernel is a shared object (or a WebAssembly module) that exports
 *
 *     const uint32_t hfreg_kernel_abi;      the version of this ABI
 *     int32_t hfreg_kernel(hfreg_context *context, const DLTensor *const *tensors, int32_t tensor_count,
 *                          const hfreg_value *attributes, int32_t attribute_count);
 *
 * and imports nothing. It owns no memory and no threads: both come from the caller's context.
 *
 *  tensors     the operator's inputs, then its outputs, in the order of its manifest; NULL for an optional input
 *              that is absent. Inputs may have any strides. Outputs are compact, row-major, have the shape that the
 *              operator's signature gives, and overlap no input.
 *  attributes  the run-time attributes of the kernel's attribute class in the order of the manifest, lists flattened.
 *
 * It returns 0, or another number after it has passed one message to `report`. It may be called from several threads
 * at once, with one context for each call.
 */
#ifndef HFREG_KERNEL_H
#define HFREG_KERNEL_H
#include "hfreg/dlpack.h"

#define HFREG_KERNEL_ABI 1u

typedef union {
    int64_t integer;
    double real;
} hfreg_value;

struct hfreg_context;
/* One index of a parallel loop. Returns 0, or an error that ends the loop. */
typedef int (*hfreg_task)(void *context, int index, uint8_t *closure);

typedef struct hfreg_context {
    uint32_t size; /* sizeof(hfreg_context): the struct grows at its end */
    uint32_t reserved;
    void *state;                                                      /* the caller's own */
    void *(*allocate)(struct hfreg_context *context, uint64_t bytes); /* aligned to 64 bytes; NULL: out of memory */
    void (*release)(struct hfreg_context *context, void *block);
    int (*parallel_for)(struct hfreg_context *context, hfreg_task task, int first, int count, uint8_t *closure);
    void (*report)(struct hfreg_context *context, const char *message);
} hfreg_context;

typedef int32_t (*hfreg_kernel_function)(hfreg_context *context, const DLTensor *const *tensors, int32_t tensor_count,
                                         const hfreg_value *attributes, int32_t attribute_count);

#endif
