/* What a kernel language sees of a call: the body of a kernel, which the front end calls with canonical views.
 *
 * A package that writes its body in C defines hfreg_body and includes this header. The build defines, for each type
 * variable V of the manifest, HFREG_V as the C type of its elements, HFREG_V_IS_<type>, and HFREG_V_LOAD and
 * HFREG_V_STORE (see elements.h); and HFREG_CLASS_<name> for the attribute class. */
#ifndef HFREG_BODY_H
#define HFREG_BODY_H
#include "hfreg/elements.h"
#include "hfreg/kernel.h"

#define HFREG_MAX_VIEW 8 /* axes of a canonical view */

/* A canonical view. Strides count elements; the last axis has stride 1 unless its tensor is HFREG_ANY_STRIDE. */
typedef struct {
    void *data;
    int32_t rank;
    DLDataType dtype;
    int64_t extent[HFREG_MAX_VIEW];
    int64_t stride[HFREG_MAX_VIEW];
} hfreg_view;

/* The body: what a kernel language compiles. `views` follow the tensors of the signature, none is absent or empty. */
int32_t hfreg_body(hfreg_context *context, const hfreg_view *views, const hfreg_value *attributes);

#endif
