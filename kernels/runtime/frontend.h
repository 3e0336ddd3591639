/* What stands between a caller's tensors and the body of a kernel.
 *
 * The build writes one `hfreg_signature` for each kernel, from the operator's manifest. The front end (frontend.c)
 * checks a call against it and hands the body canonical views: named axes in a fixed order, groups of axes merged. */
#ifndef HFREG_FRONTEND_H
#define HFREG_FRONTEND_H
#include "hfreg/body.h"

#define HFREG_MAX_NDIM 16  /* axes of a caller's tensor */
#define HFREG_MAX_TENSORS 8
#define HFREG_MAX_AXES 16
#define HFREG_MAX_ITEMS 8

/* One entry of a shape pattern such as "batch... m? k" or "n (g c) h w". */
enum { HFREG_AXIS, HFREG_GROUP, HFREG_OPTIONAL, HFREG_ONE, HFREG_OPTIONAL_ONE, HFREG_SPLIT, HFREG_MERGE };

typedef struct {
    uint8_t kind;
    uint8_t axis_count;
    uint8_t axes[3]; /* HFREG_SPLIT: outer, inner; HFREG_MERGE: outermost first */
} hfreg_item;

enum { HFREG_IS_OUTPUT = 1, HFREG_MAY_BE_ABSENT = 2, HFREG_ANY_STRIDE = 4 };

typedef struct {
    const char *name;
    const char *pattern;
    uint64_t fill; /* the bits of one element of an absent optional input */
    uint8_t code, bits;
    uint8_t flags;
    uint8_t item_count;
    hfreg_item items[HFREG_MAX_ITEMS];
} hfreg_tensor_spec;

enum { HFREG_BROADCAST = 1, HFREG_EMPTY_FILLS = 2 };

typedef struct {
    const char *name;
    uint64_t empty;    /* HFREG_EMPTY_FILLS: the bits of every output element where this axis has extent 0 */
    int64_t minimum;   /* smallest extent */
    uint8_t rank;      /* a group: how many axes it may keep in a canonical view; 0 for a single axis */
    uint8_t flags;
    int8_t attribute;  /* the attribute that gives the extent, or -1 */
    int8_t over, size; /* an axis of window positions: the axis that it slides over, the window's own axis; or -1 */
    int8_t stride, dilation, pad_before, pad_after, ceil_mode; /* attributes, or -1 for 1, 1, 0, 0, 0 */
} hfreg_axis_spec;

typedef struct {
    const char *name;
    int64_t minimum, maximum; /* of an integer attribute */
    uint8_t is_real;
} hfreg_attribute_spec;

typedef struct {
    const char *operator_name, *class_name;
    uint8_t tensor_count, axis_count, attribute_count;
    int8_t locator;  /* the attribute that says where `located` is in the patterns that hold it, or -1 */
    uint8_t located;
    hfreg_tensor_spec tensors[HFREG_MAX_TENSORS];
    hfreg_axis_spec axes[HFREG_MAX_AXES];
    const hfreg_attribute_spec *attributes;
} hfreg_signature;

extern const hfreg_signature hfreg_kernel_signature;

#endif
