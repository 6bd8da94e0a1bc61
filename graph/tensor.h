// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/dtype.h"

#include <glib-object.h>

G_BEGIN_DECLS

/* MusterTensor is a dense array of one dtype, reference-counted and immutable once it is shared.
 * Elements are in row-major order, little-endian; a bool is one byte. A tensor owns its memory, or
 * is a view of other bytes (a received message, a mapped checkpoint), which it keeps alive.
 *
 * The creator fills a tensor through muster_tensor_data_mutable () before it shares it. Threads:
 * any may read and count references; only the creator writes. */

#define MUSTER_MAX_DIMS 254 /* TensorFlow's limit */

typedef struct _MusterTensor MusterTensor;
typedef struct _MusterBudget MusterBudget; /* base/budget.h */

#define MUSTER_TYPE_TENSOR (muster_tensor_get_type ())
GType muster_tensor_get_type (void);

/* The bytes of an element of a string tensor. */
typedef struct {
  const char *data; /* (not owned) not NUL-terminated */
  gsize size;
} MusterString;

/**
 * muster_shape_n_elements:
 * @dims: (array length=n_dims)
 *
 * The number of elements of a shape, or -1 if a size is negative or the product overflows.
 */
gint64 muster_shape_n_elements (int n_dims, const gint64 *dims);

/**
 * muster_shape_to_string: (skip)
 *
 * "[64,128]"; "[]" for a scalar. An unknown size is "?", an unknown rank (-1) "<unknown>".
 */
char *muster_shape_to_string (int n_dims, const gint64 *dims);

/**
 * muster_tensor_new: (skip)
 *
 * A new tensor with uninitialised elements. The dtype must have a fixed size (no strings) and the
 * shape must be valid.
 */
MusterTensor *muster_tensor_new (MusterDType dtype, int n_dims, const gint64 *dims);

/**
 * muster_tensor_try_new: (skip)
 *
 * The same for untrusted sizes: INVALID_ARGUMENT for a bad dtype or shape, RESOURCE_EXHAUSTED if
 * there isn't enough memory.
 */
MusterTensor *muster_tensor_try_new (MusterDType dtype, int n_dims, const gint64 *dims,
                                     GError **error);

/**
 * muster_tensor_try_new_within: (skip)
 * @budget: (nullable)
 *
 * The same, with the elements' bytes taken from a budget; RESOURCE_EXHAUSTED if they exceed it.
 */
MusterTensor *muster_tensor_try_new_within (MusterBudget *budget, MusterDType dtype, int n_dims,
                                            const gint64 *dims, GError **error);

/**
 * muster_tensor_new_from_data: (skip)
 *
 * A copy of size bytes of elements. INVALID_ARGUMENT if the shape and the size don't match.
 */
MusterTensor *muster_tensor_new_from_data (MusterDType dtype, int n_dims, const gint64 *dims,
                                           const void *data, gsize size, GError **error);

/**
 * muster_tensor_new_from_bytes:
 * @dims: (array length=n_dims) (nullable)
 *
 * A view of bytes, which it references; a copy if they aren't aligned for the dtype. Errors as
 * above.
 *
 * Returns: (transfer full)
 */
MusterTensor *muster_tensor_new_from_bytes (MusterDType dtype, int n_dims, const gint64 *dims,
                                            GBytes *bytes, GError **error);

/**
 * muster_tensor_new_strings: (skip)
 *
 * A string tensor. The strings, one for each element, are copied.
 */
MusterTensor *muster_tensor_new_strings (int n_dims, const gint64 *dims,
                                         const MusterString *strings);

/**
 * muster_tensor_try_new_strings: (skip)
 * @budget: (nullable)
 *
 * The same for untrusted sizes: INVALID_ARGUMENT for a bad shape, RESOURCE_EXHAUSTED if the budget
 * or the memory doesn't suffice.
 */
MusterTensor *muster_tensor_try_new_strings (MusterBudget *budget, int n_dims, const gint64 *dims,
                                             const MusterString *strings, GError **error);

/* Scalars, and a vector of NUL-terminated strings. */
MusterTensor *muster_tensor_new_float (float value);
MusterTensor *muster_tensor_new_int32 (gint32 value);
MusterTensor *muster_tensor_new_int64 (gint64 value);
MusterTensor *muster_tensor_new_bool (gboolean value);
MusterTensor *muster_tensor_new_string (const char *text);

/**
 * muster_tensor_new_strv:
 * @strings: (array zero-terminated=1)
 *
 * Returns: (transfer full)
 */
MusterTensor *muster_tensor_new_strv (const char *const *strings);

/**
 * muster_tensor_reshape:
 * @dims: (array length=n_dims) (nullable)
 *
 * The same elements in another shape with as many elements. Shares the memory.
 *
 * Returns: (transfer full)
 */
MusterTensor *muster_tensor_reshape (MusterTensor *self, int n_dims, const gint64 *dims);

MusterTensor *muster_tensor_ref (MusterTensor *self);
void muster_tensor_unref (MusterTensor *self); /* accepts NULL */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterTensor, muster_tensor_unref)

MusterDType muster_tensor_dtype (const MusterTensor *self);
int muster_tensor_n_dims (const MusterTensor *self);

gint64 muster_tensor_n_elements (const MusterTensor *self);

/**
 * muster_tensor_dims: (skip)
 *
 * Borrowed; has n_dims elements.
 */
const gint64 *muster_tensor_dims (const MusterTensor *self);

/**
 * muster_tensor_shape:
 * @n_dims: (out): the number of dimensions
 *
 * muster_tensor_dims () for bindings, which need the length of an array.
 *
 * Returns: (array length=n_dims) (transfer full): the sizes of its dimensions
 */
gint64 *muster_tensor_shape (const MusterTensor *self, int *n_dims);

gsize muster_tensor_n_bytes (const MusterTensor *self); /* 0 for strings */

/**
 * muster_tensor_n_stored: (skip)
 *
 * The bytes of its elements in memory. For strings: a MusterString for each, and the texts. A run
 * of equal strings may be stored as one text.
 */
gsize muster_tensor_n_stored (const MusterTensor *self);

/**
 * muster_tensor_data: (skip)
 *
 * NULL for strings.
 */
const void *muster_tensor_data (const MusterTensor *self);

/**
 * muster_tensor_data_mutable: (skip)
 *
 * The elements, for the creator to fill. Only while nobody else references the tensor and it owns
 * its memory.
 */
void *muster_tensor_data_mutable (MusterTensor *self);

/**
 * muster_tensor_is_exclusive: (skip)
 *
 * TRUE if the caller holds the only reference to the tensor and to its memory, and the memory is
 * writable. Only then may it be updated in place.
 */
gboolean muster_tensor_is_exclusive (const MusterTensor *self);

/**
 * muster_tensor_string: (skip)
 *
 * Element i of a string tensor; the bytes are borrowed from the tensor.
 */
MusterString muster_tensor_string (const MusterTensor *self, gint64 i);

/**
 * muster_tensor_strings: (skip)
 *
 * All elements of a string tensor, borrowed with their bytes.
 */
const MusterString *muster_tensor_strings (const MusterTensor *self);

/**
 * muster_tensor_get_int64:
 * @value: (out)
 *
 * Reads the only element of a tensor of an integer type or bool (TRUE is 1), of any rank.
 * INVALID_ARGUMENT, which names the tensor's type and shape, for any other tensor.
 */
gboolean muster_tensor_get_int64 (const MusterTensor *self, gint64 *value, GError **error);

/**
 * muster_tensor_get_double:
 * @value: (out)
 *
 * The same for any real number or bool. A value that a double can't represent is rounded.
 */
gboolean muster_tensor_get_double (const MusterTensor *self, double *value, GError **error);

/**
 * muster_tensor_get_string:
 * @value: (out) (transfer full)
 *
 * The same for a string, as a copy. INVALID_ARGUMENT also if it contains a NUL.
 */
gboolean muster_tensor_get_string (const MusterTensor *self, char **value, GError **error);

/* TRUE if the dtype, the shape and all bits of the elements are the same. */
gboolean muster_tensor_equal (const MusterTensor *a, const MusterTensor *b);

/* The elements' memory, shared, not copied; empty for strings. */
GBytes *muster_tensor_to_bytes (MusterTensor *self);

/**
 * muster_tensor_append_element: (skip)
 *
 * Appends one element as text: a number with the fewest digits that read back as the same, at most
 * most bytes of a string.
 */
void muster_tensor_append_element (GString *text, const MusterTensor *self, gint64 i, gsize most);

/* The values as text, at most limit elements: "[1, 2, 3, …]". */
char *muster_tensor_to_string (const MusterTensor *self, gint64 limit);

G_END_DECLS
