/* The front end of every kernel: check the call, bind the axes, make canonical views, run the body. */
#include "frontend.h"

#define SIZE_LIMIT ((int64_t)1 << 31) /* elements that 32-bit indexing can reach */

/* ---- messages ---------------------------------------------------------------------------------------------- */

typedef struct {
    char text[320];
    int length;
} message;

static void put_until(message *m, const char *text, char end) {
    while (*text && *text != end && m->length < (int)sizeof m->text - 1) m->text[m->length++] = *text++;
    m->text[m->length] = 0;
}

static void put(message *m, const char *text) { put_until(m, text, 0); }

static void put_integer(message *m, int64_t value) {
    char digits[24];
    int at = sizeof digits - 1;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    digits[at] = 0;
    do digits[--at] = (char)('0' + rest % 10), rest /= 10; while (rest);
    if (value < 0) digits[--at] = '-';
    put(m, digits + at);
}

static void put_shape(message *m, const int64_t *shape, int32_t count) {
    put(m, "[");
    for (int i = 0; i < count; i++) {
        if (i) put(m, ", ");
        put_integer(m, shape[i]);
    }
    put(m, "]");
}

/* ---- state of one call ------------------------------------------------------------------------------------- */

#define MAX_ENTRIES (HFREG_MAX_NDIM + HFREG_MAX_ITEMS)

typedef struct {
    int32_t count; /* -1: not bound yet; 1 for an axis, 0 for one that is absent, any number for a group */
    int64_t extent[HFREG_MAX_NDIM];
    int8_t owner; /* the tensor that was the first to have the axis, for messages; -1: an attribute */
} binding;

/* A tensor over the bound axes: broadcasting and absent tensors have strides of 0. */
typedef struct {
    int32_t count;
    int64_t extent[MAX_ENTRIES];
    int64_t stride[MAX_ENTRIES];
    uint8_t axis[MAX_ENTRIES];
    void *data;
    void *scratch; /* released after the body ran */
} layout;

typedef struct {
    hfreg_context *context;
    const hfreg_signature *signature;
    const DLTensor *const *tensors;
    const hfreg_value *attributes;
    binding axes[HFREG_MAX_AXES];
    int8_t takes[HFREG_MAX_TENSORS][HFREG_MAX_ITEMS]; /* how many axes of the tensor an item of its pattern takes */
    layout layouts[HFREG_MAX_TENSORS];
} call;

static message start(const call *c) {
    message m = {.length = 0};
    put(&m, c->signature->operator_name);
    put(&m, ": ");
    return m;
}

static int32_t fail(const call *c, const message *m) {
    c->context->report(c->context, m->text);
    return 1;
}

static int32_t fail_tensor(const call *c, int t, const char *what) {
    message m = start(c);
    put(&m, c->signature->tensors[t].name);
    put(&m, " ");
    put(&m, what);
    return fail(c, &m);
}

static message start_shape(const call *c, int t) {
    const hfreg_tensor_spec *spec = &c->signature->tensors[t];
    message m = start(c);
    put(&m, spec->name);
    put(&m, " has shape ");
    put_shape(&m, c->tensors[t]->shape, c->tensors[t]->ndim);
    put(&m, ", expected [");
    put(&m, spec->pattern);
    put(&m, "]");
    return m;
}

static int32_t fail_shape(const call *c, int t) {
    message m = start_shape(c, t);
    return fail(c, &m);
}

/* A tensor's shape does not fit what an axis or a group is already. */
static int32_t fail_bound(const call *c, int t, int axis) {
    const hfreg_axis_spec *spec = &c->signature->axes[axis];
    const binding *b = &c->axes[axis];
    message m = start_shape(c, t);
    put(&m, ": ");
    put(&m, spec->name);
    put(&m, " is ");
    if (spec->rank) put_shape(&m, b->extent, b->count);
    else put_integer(&m, b->count ? b->extent[0] : 1);
    if (b->owner >= 0) put(&m, " in "), put(&m, c->signature->tensors[b->owner].name);
    else if (spec->attribute >= 0) put(&m, " in attribute "), put_until(&m, c->signature->attributes[spec->attribute].name, '[');
    return fail(c, &m);
}

static message start_attribute(const call *c, int a, const char *expected) {
    message m = start(c);
    put(&m, c->signature->attributes[a].name);
    put(&m, " is ");
    put_integer(&m, c->attributes[a].integer);
    put(&m, ", ");
    put(&m, expected);
    return m;
}

static int32_t fail_limit(const call *c, int a, const char *expected, int64_t limit) {
    message m = start_attribute(c, a, expected);
    put_integer(&m, limit);
    return fail(c, &m);
}

static int32_t fail_locator(const call *c, int t) {
    message m = start_attribute(c, c->signature->locator, "expected ");
    int32_t ndim = c->tensors[t]->ndim;
    put_integer(&m, -ndim);
    put(&m, " to ");
    put_integer(&m, ndim - 1);
    put(&m, ": ");
    put(&m, c->signature->tensors[t].name);
    put(&m, " has ");
    put_integer(&m, ndim);
    put(&m, " axes");
    return fail(c, &m);
}

static int32_t fail_class(const call *c) {
    message m = start_attribute(c, c->signature->locator, "which the class ");
    put(&m, c->signature->class_name);
    put(&m, " has not");
    return fail(c, &m);
}

/* ---- 1. the call itself ------------------------------------------------------------------------------------ */

static int32_t check_count(const call *c, const char *what, int32_t given, int32_t expected) {
    if (given == expected) return 0;
    message m = start(c);
    put(&m, "called with ");
    put_integer(&m, given);
    put(&m, what);
    put_integer(&m, expected);
    return fail(c, &m);
}

static int32_t check_attribute(const call *c, int a) {
    const hfreg_attribute_spec *spec = &c->signature->attributes[a];
    if (spec->is_real) return 0;
    if (c->attributes[a].integer < spec->minimum) return fail_limit(c, a, "expected at least ", spec->minimum);
    if (c->attributes[a].integer > spec->maximum) return fail_limit(c, a, "expected at most ", spec->maximum);
    return 0;
}

static int32_t check_tensor(const call *c, int t) {
    const hfreg_tensor_spec *spec = &c->signature->tensors[t];
    const DLTensor *tensor = c->tensors[t];
    if (!tensor) return spec->flags & HFREG_MAY_BE_ABSENT ? 0 : fail_tensor(c, t, "is missing");
    if (tensor->device.device_type != 1) return fail_tensor(c, t, "is not in CPU memory");
    if (tensor->dtype.code != spec->code || tensor->dtype.bits != spec->bits || tensor->dtype.lanes != 1)
        return fail_tensor(c, t, "has another element type than this kernel");
    if (tensor->ndim < 0 || tensor->ndim > HFREG_MAX_NDIM) return fail_tensor(c, t, "has more than 16 axes");
    int64_t reach = 1, elements = 1;
    for (int i = 0; i < tensor->ndim; i++) {
        int64_t extent = tensor->shape[i];
        if (extent < 0) return fail_tensor(c, t, "has a negative extent");
        if (extent >= SIZE_LIMIT || (elements *= extent) >= SIZE_LIMIT)
            return fail_tensor(c, t, "has 2^31 elements or more, which this kernel does not support");
        if (!tensor->strides || extent < 2) continue;
        int64_t stride = tensor->strides[i] < 0 ? -tensor->strides[i] : tensor->strides[i];
        if (stride >= SIZE_LIMIT || (reach += stride * (extent - 1)) >= SIZE_LIMIT)
            return fail_tensor(c, t, "spans 2^31 elements or more, which this kernel does not support");
    }
    return 0;
}

/* ---- 2. which axes of a tensor belong to which item of its pattern ------------------------------------------ */

static int32_t match(call *c, int t) {
    const hfreg_signature *s = c->signature;
    const hfreg_tensor_spec *spec = &s->tensors[t];
    int8_t *takes = c->takes[t];
    int32_t ndim = c->tensors[t]->ndim, spare = ndim, groups = 0, located = -1;
    for (int i = 0; i < spec->item_count; i++) {
        uint8_t kind = spec->items[i].kind;
        takes[i] = kind == HFREG_MERGE ? (int8_t)spec->items[i].axis_count : kind == HFREG_AXIS || kind == HFREG_SPLIT || kind == HFREG_ONE;
        spare -= takes[i];
        groups += kind == HFREG_GROUP;
        if (s->locator >= 0 && spec->item_count > 1 && (kind == HFREG_AXIS || kind == HFREG_GROUP) &&
            spec->items[i].axes[0] == s->located)
            located = i;
    }
    int64_t position = located < 0 ? 0 : c->attributes[s->locator].integer;
    if (position < 0) position += ndim;
    if (located >= 0 && (position < 0 || position >= ndim)) return ndim ? fail_locator(c, t) : fail_shape(c, t);
    for (int i = 0; i < spec->item_count; i++) {
        int32_t known = c->axes[spec->items[i].axes[0]].count; /* an output has the optional axes that the inputs have */
        if (spec->items[i].kind == HFREG_OPTIONAL) takes[i] = known >= 0 ? known > 0 : spare > 0;
        else if (spec->items[i].kind == HFREG_OPTIONAL_ONE) takes[i] = spare > 0;
        else continue;
        spare -= takes[i];
    }
    for (int i = 0; i < spec->item_count; i++)
        if (spec->items[i].kind == HFREG_GROUP) {
            takes[i] = (int8_t)(spare < 0 ? 0 : groups == 2 && located >= 0 && position < spare ? position : spare);
            spare -= takes[i];
            groups = 1;
        }
    if (spare != 0) return fail_shape(c, t);
    for (int i = 0; i < located; i++) position -= takes[i];
    if (located >= 0 && position != 0) return fail_class(c);
    return 0;
}

/* ---- 3. binding axes to extents ----------------------------------------------------------------------------- */

static void bind(binding *b, int64_t extent, int owner) {
    b->count = 1;
    b->extent[0] = extent;
    b->owner = (int8_t)owner;
}

static int32_t bind_axis(call *c, int t, int axis, int64_t extent) {
    binding *b = &c->axes[axis];
    if (b->count < 0) bind(b, extent, t);
    return b->count == 1 && b->extent[0] == extent ? 0 : fail_bound(c, t, axis);
}

static int32_t bind_split(call *c, int t, const hfreg_item *item, int64_t extent) {
    int known = c->axes[item->axes[0]].count >= 0 ? item->axes[0] : item->axes[1];
    int other = known == item->axes[0] ? item->axes[1] : item->axes[0];
    int64_t parts = c->axes[known].count >= 0 ? c->axes[known].extent[0] : 0;
    if (parts <= 0 || extent % parts != 0) return fail_bound(c, t, known);
    return bind_axis(c, t, other, extent / parts);
}

/* Inputs of a broadcasting group are aligned at the right; an extent of 1 stretches. Outputs have the full shape. */
static int32_t bind_group(call *c, int t, int axis, const int64_t *shape, int32_t count) {
    binding *b = &c->axes[axis];
    int stretches = !(c->signature->tensors[t].flags & HFREG_IS_OUTPUT) && c->signature->axes[axis].flags & HFREG_BROADCAST;
    if (b->count < 0) b->count = 0, b->owner = (int8_t)t;
    else if (count != b->count && !stretches) return fail_bound(c, t, axis);
    for (int32_t i = 1; i <= count && i <= b->count; i++) {
        int64_t known = b->extent[b->count - i], given = shape[count - i];
        if (known != given && !(stretches && (known == 1 || given == 1))) return fail_bound(c, t, axis);
    }
    int32_t grow = count > b->count ? count - b->count : 0;
    for (int32_t i = b->count - 1; i >= 0 && grow; i--) b->extent[i + grow] = b->extent[i];
    for (int32_t i = 0; i < grow; i++) b->extent[i] = shape[i];
    b->count += grow;
    for (int32_t i = 1; i <= count; i++)
        if (b->extent[b->count - i] == 1) b->extent[b->count - i] = shape[count - i];
    return 0;
}

static int32_t bind_tensor(call *c, int t) {
    const hfreg_tensor_spec *spec = &c->signature->tensors[t];
    const int64_t *shape = c->tensors[t]->shape;
    for (int i = 0; i < spec->item_count; shape += c->takes[t][i++]) {
        const hfreg_item *item = &spec->items[i];
        int32_t taken = c->takes[t][i], error = 0;
        if (item->kind == HFREG_GROUP) error = bind_group(c, t, item->axes[0], shape, taken);
        else if (item->kind == HFREG_SPLIT) error = bind_split(c, t, item, shape[0]);
        else if (item->kind == HFREG_ONE || item->kind == HFREG_OPTIONAL_ONE) error = taken && shape[0] != 1 ? fail_shape(c, t) : 0;
        else if (!taken && c->axes[item->axes[0]].count < 0) c->axes[item->axes[0]].count = 0;
        for (int32_t n = 0; !error && (item->kind == HFREG_AXIS || item->kind == HFREG_OPTIONAL || item->kind == HFREG_MERGE) && n < taken; n++)
            error = bind_axis(c, t, item->axes[n], shape[n]);
        if (error) return error;
    }
    return 0;
}

static int64_t attribute_or(const call *c, int a, int64_t otherwise) { return a < 0 ? otherwise : c->attributes[a].integer; }

/* What keeps the 32-bit arithmetic of a body in range. A step s or d is at most STEP_LIMIT < 2^16, and an axis with its
 * padding, P, at most PADDED_LIMIT = 2^29, as is each pad by itself. A window starts before P (in ceil mode too) and
 * reaches over at most P; schedules round positions up by at most 2^13. So no coordinate exceeds
 * 2 * 2^29 + 2^13 * 2^16 < 2^31. */
#define STEP_LIMIT 65535
#define PADDED_LIMIT ((int64_t)1 << 29)
#define PLANE_LIMIT ((int64_t)1 << 29)

static int32_t check_step(const call *c, int a) {
    return attribute_or(c, a, 1) > STEP_LIMIT ? fail_limit(c, a, "expected at most ", STEP_LIMIT) : 0;
}

static int32_t check_pad(const call *c, int a) {
    return attribute_or(c, a, 0) > PADDED_LIMIT ? fail_limit(c, a, "expected at most ", PADDED_LIMIT) : 0;
}

static int32_t fail_padded(const call *c, int axis, int64_t padded) {
    message m = start(c);
    put(&m, c->signature->axes[axis].name);
    put(&m, " with its padding is ");
    put_integer(&m, padded);
    put(&m, ", expected at most ");
    put_integer(&m, PADDED_LIMIT);
    return fail(c, &m);
}

/* Positions of a window: (padded - dilated window) / stride + 1, rounded down, or up in ceil mode unless the last
 * window would start beyond the input and its leading padding (ONNX MaxPool-12, Conv-11). */
static int32_t bind_window(call *c, int axis) {
    const hfreg_axis_spec *spec = &c->signature->axes[axis];
    if (check_step(c, spec->stride) || check_step(c, spec->dilation)) return 1;
    if (check_pad(c, spec->pad_before) || check_pad(c, spec->pad_after)) return 1;
    int64_t input = c->axes[spec->over].extent[0], size = c->axes[spec->size].extent[0];
    int64_t stride = attribute_or(c, spec->stride, 1), before = attribute_or(c, spec->pad_before, 0);
    int64_t padded = input + before + attribute_or(c, spec->pad_after, 0);
    if (padded > PADDED_LIMIT) return fail_padded(c, spec->over, padded);
    int64_t reach = attribute_or(c, spec->dilation, 1) * (size - 1) + 1, room = padded - reach;
    if (room < 0 || size < 1) {
        message m = start(c);
        put(&m, "the window spans ");
        put_integer(&m, reach);
        put(&m, " along ");
        put(&m, c->signature->axes[spec->over].name);
        put(&m, ", more than the ");
        put_integer(&m, padded);
        put(&m, " of the padded input");
        return fail(c, &m);
    }
    int64_t positions = room / stride + 1;
    if (attribute_or(c, spec->ceil_mode, 0) && room % stride != 0 && positions * stride < input + before) positions++;
    bind(&c->axes[axis], positions, -1);
    return 0;
}

static int is_in_output(const call *c, int axis) {
    const hfreg_signature *s = c->signature;
    for (int t = 0; t < s->tensor_count; t++)
        for (int i = 0; i < s->tensors[t].item_count && s->tensors[t].flags & HFREG_IS_OUTPUT; i++)
            for (int n = 0; n < s->tensors[t].items[i].axis_count; n++)
                if (s->tensors[t].items[i].axes[n] == axis) return 1;
    return 0;
}

static int position_axis(const call *c, int over) {
    for (int a = 0; a < c->signature->axis_count; a++)
        if (c->signature->axes[a].over == over) return a;
    return -1;
}

/* a * b, or PLANE_LIMIT where that is more; both at most 2^31. */
static int64_t times(int64_t a, int64_t b) { return a * b < PLANE_LIMIT ? a * b : PLANE_LIMIT; }

/* A contraction of windows copies each image into a plane that is split by phase (hfreg/lang/window_contraction.py).
 * Along an axis a phase has at most (P - 1) / s + 2 positions, so all s phases have P + 2 s; a phase of the plane also
 * has the padding before its last axis, at most the largest P. So a channel takes, with P and s of each window axis, at
 * most product(P + 2 s) + max(P) * product(s) elements, rounded up by less than 32, and what the output's tiles read
 * behind the last channel is less than two channels and 4096. All of it is addressed in bytes, so it stays below 2^29
 * float32 elements; a contraction is told by an axis that the output has not. */
static int32_t check_plane(const call *c, int t) {
    const hfreg_tensor_spec *spec = &c->signature->tensors[t];
    message m = start(c);
    put(&m, spec->name);
    put(&m, " padded to whole strides has 2^29 elements or more along");
    int64_t area = 1, widest = 0, phases = 1, channels = 1;
    int contracted = 0, separators = 0;
    for (int i = 0; i < spec->item_count; i++)
        for (int n = 0; n < spec->items[i].axis_count; n++) {
            int axis = spec->items[i].axes[n], position = position_axis(c, axis);
            if (position < 0 && is_in_output(c, axis)) continue;
            put(&m, separators++ ? ", " : " ");
            put(&m, c->signature->axes[axis].name);
            if (position >= 0) {
                const hfreg_axis_spec *window = &c->signature->axes[position];
                int64_t stride = attribute_or(c, window->stride, 1), padded = c->axes[axis].extent[0];
                padded += attribute_or(c, window->pad_before, 0) + attribute_or(c, window->pad_after, 0);
                area = times(area, padded + 2 * stride);
                phases = times(phases, stride);
                widest = padded > widest ? padded : widest;
            } else {
                contracted = 1;
                for (int e = 0; e < c->axes[axis].count; e++) channels = times(channels, c->axes[axis].extent[e]);
            }
        }
    int64_t channel = area + times(phases, widest) + 32;
    if (!widest || !contracted || times(channels + 2, channel) + 4096 < PLANE_LIMIT) return 0;
    put(&m, ", which this kernel does not support");
    return fail(c, &m);
}

static int32_t check_minimum(const call *c, int axis) {
    const hfreg_axis_spec *spec = &c->signature->axes[axis];
    int64_t smallest = INT64_MAX;
    for (int i = 0; i < c->axes[axis].count; i++)
        if (c->axes[axis].extent[i] < smallest) smallest = c->axes[axis].extent[i];
    if (smallest >= spec->minimum) return 0;
    message m = start(c);
    put(&m, spec->name);
    put(&m, " is ");
    put_integer(&m, smallest);
    put(&m, ", expected at least ");
    put_integer(&m, spec->minimum);
    return fail(c, &m);
}

static int32_t bind_tensors(call *c, int outputs) {
    const hfreg_signature *s = c->signature;
    for (int t = 0; t < s->tensor_count; t++)
        if (c->tensors[t] && !(s->tensors[t].flags & HFREG_IS_OUTPUT) == !outputs && (match(c, t) || bind_tensor(c, t))) return 1;
    return 0;
}

static int32_t bind_all(call *c) {
    const hfreg_signature *s = c->signature;
    for (int a = 0; a < s->axis_count; a++) {
        bind(&c->axes[a], 1, -1);
        c->axes[a].count = -1;
        if (s->axes[a].attribute >= 0) bind(&c->axes[a], c->attributes[s->axes[a].attribute].integer, -1);
    }
    if (bind_tensors(c, 0)) return 1;
    for (int a = 0; a < s->axis_count; a++)
        if (s->axes[a].over >= 0 && bind_window(c, a)) return 1;
    for (int t = 0; t < s->tensor_count; t++)
        if (c->tensors[t] && !(s->tensors[t].flags & HFREG_IS_OUTPUT) && check_plane(c, t)) return 1;
    for (int a = 0; a < s->axis_count; a++)
        if (check_minimum(c, a)) return 1;
    return bind_tensors(c, 1);
}

/* ---- 4. layouts over the bound axes -------------------------------------------------------------------------- */

static void append(layout *l, int axis, int64_t extent, int64_t stride) {
    l->axis[l->count] = (uint8_t)axis;
    l->extent[l->count] = extent;
    l->stride[l->count++] = stride;
}

static void lay_out(call *c, int t, const int64_t *strides) {
    const hfreg_tensor_spec *spec = &c->signature->tensors[t];
    const DLTensor *tensor = c->tensors[t];
    layout *l = &c->layouts[t];
    int at = 0;
    for (int i = 0; i < spec->item_count; at += tensor ? c->takes[t][i] : 0, i++) {
        const hfreg_item *item = &spec->items[i];
        int taken = tensor ? c->takes[t][i] : 0;
        if (item->kind == HFREG_ONE || item->kind == HFREG_OPTIONAL_ONE) continue;
        if (item->kind == HFREG_SPLIT) {
            int64_t inner = c->axes[item->axes[1]].extent[0], stride = taken ? strides[at] : 0;
            append(l, item->axes[0], c->axes[item->axes[0]].extent[0], stride * inner);
            append(l, item->axes[1], inner, stride);
        } else if (item->kind == HFREG_MERGE) {
            for (int n = 0; n < item->axis_count; n++)
                append(l, item->axes[n], c->axes[item->axes[n]].extent[0], taken ? strides[at + n] : 0);
        } else {
            const binding *b = &c->axes[item->axes[0]];
            for (int p = 0; p < b->count; p++) {
                int own = p - (b->count - taken); /* the position among the tensor's own axes of this item */
                append(l, item->axes[0], b->extent[p], own >= 0 && tensor->shape[at + own] != 1 ? strides[at + own] : 0);
            }
        }
    }
}

static void make_layout(call *c, int t) {
    const DLTensor *tensor = c->tensors[t];
    layout *l = &c->layouts[t];
    int64_t compact[HFREG_MAX_NDIM], step = 1;
    l->count = 0;
    l->scratch = 0;
    l->data = tensor ? (char *)tensor->data + tensor->byte_offset : (void *)&c->signature->tensors[t].fill;
    for (int i = tensor ? tensor->ndim - 1 : -1; i >= 0; i--) compact[i] = step, step *= tensor->shape[i];
    lay_out(c, t, tensor && tensor->strides ? tensor->strides : compact);
}

/* ---- 5. inputs that the body cannot walk are copied ---------------------------------------------------------- */

/* The entries of a layout that an item of the pattern has. */
static int entries_of(const call *c, const hfreg_item *item) {
    if (item->kind == HFREG_ONE || item->kind == HFREG_OPTIONAL_ONE) return 0;
    return item->kind == HFREG_SPLIT || item->kind == HFREG_MERGE ? item->axis_count : c->axes[item->axes[0]].count;
}

/* Whether some entries follow each other without gaps, so that they are one axis. */
static int is_dense(const layout *l, int first, int end) {
    int inner = -1;
    for (int i = end - 1; i >= first; i--) {
        if (l->extent[i] == 1) continue;
        if (inner >= 0 && l->stride[i] != l->stride[inner] * l->extent[inner]) return 0;
        inner = i;
    }
    return 1;
}

/* Whether the body can walk a tensor: elements of the last axis side by side, merged axes without gaps. */
static int can_walk(const call *c, int t) {
    const hfreg_tensor_spec *spec = &c->signature->tensors[t];
    const layout *l = &c->layouts[t];
    int end = 0, last = 0;
    for (int i = 0; i < spec->item_count; i++) {
        int first = end;
        end += entries_of(c, &spec->items[i]);
        if (end > first) last = spec->items[i].kind == HFREG_SPLIT ? first + 1 : first;
        if (spec->items[i].kind == HFREG_MERGE && !is_dense(l, first, end)) return 0;
    }
    for (int i = end - 1; i >= last; i--)
        if (l->extent[i] > 1) return l->stride[i] == 1;
    return 1;
}

#define COPY_ROW(type)                                                                             \
    do {                                                                                           \
        const type *source = (const type *)from;                                                   \
        type *target = (type *)to;                                                                 \
        for (int64_t i = 0; i < extent; i++) target[i] = source[i * stride];                       \
    } while (0)

static void copy_row(void *to, const void *from, int64_t extent, int64_t stride, int32_t bytes) {
    if (bytes == 1) COPY_ROW(uint8_t);
    else if (bytes == 2) COPY_ROW(uint16_t);
    else if (bytes == 4) COPY_ROW(uint32_t);
    else COPY_ROW(uint64_t);
}

static int32_t materialize(call *c, int t) {
    layout *l = &c->layouts[t];
    int32_t bytes = (c->signature->tensors[t].bits + 7) / 8, last = l->count - 1;
    int64_t index[MAX_ENTRIES] = {0}, offset = 0, elements = 1;
    for (int i = 0; i <= last; i++)
        if ((elements *= l->extent[i]) >= SIZE_LIMIT)
            return fail_tensor(c, t, "broadcasts to 2^31 elements or more, which this kernel does not support");
    char *to = c->context->allocate(c->context, (uint64_t)(elements * bytes));
    if (!to) return fail_tensor(c, t, "needs a contiguous copy, and memory ran out");
    l->scratch = to;
    int64_t row = last < 0 ? 1 : l->extent[last], stride = last < 0 ? 0 : l->stride[last];
    for (int64_t done = 0; done < elements; done += row, to += row * bytes) {
        copy_row(to, (const char *)l->data + offset * bytes, row, stride, bytes);
        for (int i = last - 1; i >= 0; i--) {
            offset += l->stride[i];
            if (++index[i] < l->extent[i]) break;
            offset -= l->stride[i] * l->extent[i];
            index[i] = 0;
        }
    }
    l->data = l->scratch;
    for (int64_t i = last, step = 1; i >= 0; step *= l->extent[i--]) l->stride[i] = step;
    return 0;
}

/* A group's axes, merged as far as every tensor that holds it allows. */
typedef struct {
    int32_t count;
    int64_t extent[HFREG_MAX_NDIM];
    int8_t last[HFREG_MAX_NDIM]; /* the innermost position of each run; its stride is the run's */
} runs;

static int first_entry(const layout *l, int axis) {
    int i = 0;
    while (i < l->count && l->axis[i] != axis) i++;
    return i;
}

static int joins(const call *c, int axis, int outer, int inner) {
    for (int t = 0; t < c->signature->tensor_count; t++) {
        const layout *l = &c->layouts[t];
        int first = first_entry(l, axis);
        if (first < l->count && l->stride[first + outer] != l->stride[first + inner] * l->extent[first + inner]) return 0;
    }
    return 1;
}

static runs merge_group(const call *c, int axis) {
    const binding *b = &c->axes[axis];
    runs r = {.count = 0};
    for (int p = 0; p < b->count; p++) {
        if (b->extent[p] == 1) continue;
        if (r.count && joins(c, axis, r.last[r.count - 1], p)) r.extent[r.count - 1] *= b->extent[p];
        else r.extent[r.count++] = b->extent[p];
        r.last[r.count - 1] = (int8_t)p;
    }
    return r;
}

static int32_t materialize_where_needed(call *c) {
    const hfreg_signature *s = c->signature;
    for (int t = 0; t < s->tensor_count; t++) {
        int is_input = !(s->tensors[t].flags & HFREG_IS_OUTPUT), any_stride = s->tensors[t].flags & HFREG_ANY_STRIDE;
        if (is_input && !any_stride && !can_walk(c, t) && materialize(c, t)) return 1;
    }
    for (int a = 0; a < s->axis_count; a++) {
        if (!s->axes[a].rank || merge_group(c, a).count <= s->axes[a].rank) continue;
        for (int t = 0; t < s->tensor_count; t++) {
            int first = first_entry(&c->layouts[t], a), end = first;
            while (end < c->layouts[t].count && c->layouts[t].axis[end] == a) end++;
            if (!c->layouts[t].scratch && !is_dense(&c->layouts[t], first, end) && materialize(c, t)) return 1;
        }
    }
    return 0;
}

/* ---- 6. canonical views --------------------------------------------------------------------------------------- */

static void view_append(hfreg_view *v, int64_t extent, int64_t stride) {
    v->extent[v->rank] = extent;
    v->stride[v->rank++] = stride;
}

static void view_group(const call *c, hfreg_view *v, const layout *l, int axis) {
    runs r = merge_group(c, axis);
    int first = first_entry(l, axis);
    for (int i = r.count; i < c->signature->axes[axis].rank; i++) view_append(v, 1, 0);
    for (int i = 0; i < r.count; i++) view_append(v, r.extent[i], l->stride[first + r.last[i]]);
}

static void make_view(const call *c, int t, hfreg_view *v) {
    const hfreg_tensor_spec *spec = &c->signature->tensors[t];
    const layout *l = &c->layouts[t];
    v->data = l->data;
    v->rank = 0;
    v->dtype = (DLDataType){spec->code, spec->bits, 1};
    for (int i = 0, at = 0; i < spec->item_count; at += entries_of(c, &spec->items[i++])) {
        const hfreg_item *item = &spec->items[i];
        int count = entries_of(c, item);
        if (item->kind == HFREG_GROUP) {
            view_group(c, v, l, item->axes[0]);
        } else if (item->kind == HFREG_MERGE) {
            int64_t extent = 1, stride = 0;
            for (int n = at; n < at + count; n++)
                if (l->extent[n] != 1) extent *= l->extent[n], stride = l->stride[n];
            view_append(v, extent, stride);
        } else if (item->kind == HFREG_OPTIONAL && count == 0) {
            view_append(v, 1, 0);
        } else {
            for (int n = at; n < at + count; n++) view_append(v, l->extent[n], l->stride[n]);
        }
    }
    if (v->rank && v->extent[v->rank - 1] == 1) v->stride[v->rank - 1] = 1;
}

/* ---- 7. outputs without elements, and reductions over nothing -------------------------------------------------- */

static int64_t size_of(const DLTensor *tensor) {
    int64_t elements = 1;
    for (int i = 0; i < tensor->ndim; i++) elements *= tensor->shape[i];
    return elements;
}

static void fill(const DLTensor *tensor, uint64_t bits) {
    int64_t elements = size_of(tensor);
    int32_t bytes = (tensor->dtype.bits + 7) / 8;
    copy_row((char *)tensor->data + tensor->byte_offset, &bits, elements, 0, bytes);
}

/* Returns 1 where nothing is left for the body to do. */
static int is_done(const call *c) {
    const hfreg_signature *s = c->signature;
    int64_t elements = 0;
    for (int t = 0; t < s->tensor_count; t++)
        if (s->tensors[t].flags & HFREG_IS_OUTPUT) elements += size_of(c->tensors[t]);
    if (elements == 0) return 1;
    for (int a = 0; a < s->axis_count; a++)
        if (s->axes[a].flags & HFREG_EMPTY_FILLS && c->axes[a].count == 1 && c->axes[a].extent[0] == 0) {
            for (int t = 0; t < s->tensor_count; t++)
                if (s->tensors[t].flags & HFREG_IS_OUTPUT) fill(c->tensors[t], s->axes[a].empty);
            return 1;
        }
    return 0;
}

/* ---- the entry point -------------------------------------------------------------------------------------------- */

#define EXPORT __attribute__((visibility("default")))

EXPORT const uint32_t hfreg_kernel_abi = HFREG_KERNEL_ABI;

static int32_t run(call *c) {
    const hfreg_signature *s = c->signature;
    hfreg_view views[HFREG_MAX_TENSORS];
    for (int t = 0; t < s->tensor_count; t++) make_layout(c, t);
    int32_t error = materialize_where_needed(c);
    for (int t = 0; !error && t < s->tensor_count; t++) make_view(c, t, &views[t]);
    if (!error) error = hfreg_body(c->context, views, c->attributes);
    for (int t = 0; t < s->tensor_count; t++)
        if (c->layouts[t].scratch) c->context->release(c->context, c->layouts[t].scratch);
    return error;
}

EXPORT int32_t hfreg_kernel(hfreg_context *context, const DLTensor *const *tensors, int32_t tensor_count,
                            const hfreg_value *attributes, int32_t attribute_count) {
    call c;
    c.context = context;
    c.signature = &hfreg_kernel_signature;
    c.tensors = tensors;
    c.attributes = attributes;
    if (check_count(&c, " tensors, expected ", tensor_count, c.signature->tensor_count)) return 1;
    if (check_count(&c, " attributes, expected ", attribute_count, c.signature->attribute_count)) return 1;
    for (int a = 0; a < attribute_count; a++)
        if (check_attribute(&c, a)) return 1;
    for (int t = 0; t < tensor_count; t++)
        if (check_tensor(&c, t)) return 1;
    if (bind_all(&c)) return 1;
    return is_done(&c) ? 0 : run(&c);
}
