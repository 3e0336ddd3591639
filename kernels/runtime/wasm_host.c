/* What a WebAssembly kernel needs of a host, inside the module itself, so that it imports nothing: a context whose
 * memory is the module's own linear memory and whose parallel loops run in order. A host that has more to offer
 * passes a context of its own. */
#include "hfreg/kernel.h"

#define EXPORT __attribute__((visibility("default")))
#define PAGE 65536u
#define LARGEST 0xffff0000u /* the address space has 2^32 bytes; the last page is left out, so that no address wraps */

extern unsigned char __heap_base; /* the linker's: the first free byte */
static uint32_t top, base;
static char last_message[320];

static void *allocate(hfreg_context *context, uint64_t bytes) {
    (void)context;
    uint64_t start = ((uint64_t)top + 63) & ~(uint64_t)63, end = start + bytes;
    uint64_t have = (uint64_t)__builtin_wasm_memory_size(0) * PAGE;
    if (bytes > LARGEST || end > LARGEST) return 0;
    if (end > have && __builtin_wasm_memory_grow(0, (end - have + PAGE - 1) / PAGE) == (unsigned long)-1) return 0;
    top = (uint32_t)end;
    return (void *)(uint32_t)start;
}

/* Blocks go all at once, at the next hfreg_reset. */
static void release(hfreg_context *context, void *block) { (void)context, (void)block; }

static int parallel_for(hfreg_context *context, hfreg_task task, int first, int count, uint8_t *closure) {
    for (int i = first; i < first + count; i++) {
        int error = task(context, i, closure);
        if (error) return error;
    }
    return 0;
}

static void report(hfreg_context *context, const char *message) {
    (void)context;
    int i = 0;
    for (; message[i] && i < (int)sizeof last_message - 1; i++) last_message[i] = message[i];
    last_message[i] = 0;
}

static hfreg_context host = {sizeof host, 0, 0, allocate, release, parallel_for, report};

/* Memory for the caller's tensors; it stays until the module goes. */
EXPORT void *hfreg_reserve(uint32_t bytes) {
    if (!top) top = (uint32_t)&__heap_base;
    void *block = allocate(&host, bytes);
    base = top;
    return block;
}

/* Free all that kernels allocated. */
EXPORT void hfreg_reset(void) { top = base; }

EXPORT hfreg_context *hfreg_host_context(void) { return &host; }

EXPORT const char *hfreg_host_message(void) { return last_message; }
