// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/dtype.h"

#include <glib-object.h>

G_BEGIN_DECLS

/* MusterTensor is a dense array of one dtype: immutable once it has been handed on, and counted, so
 * that sharing one costs an atomic increment. Elements lie in row-major order, little-endian, bool
 * as one byte. A tensor either owns its memory, or is a view over bytes that came from elsewhere (a
 * received message, a mapped checkpoint) and keeps those alive; nobody can tell the difference but
 * by counting copies.
 *
 * Its maker fills it through muster_tensor_data_mutable () before anybody else holds it. Threads:
 * any number may read and count; only the maker writes. */

#define MUSTER_MAX_DIMS 254 /* TensorFlow's limit */

typedef struct _MusterTensor MusterTensor;
typedef struct _MusterBudget MusterBudget; /* base/budget.h */

#define MUSTER_TYPE_TENSOR (muster_tensor_get_type ())
GType muster_tensor_get_type (void);

/* A string's bytes within a string tensor. */
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
 * "[64,128]"; "[]" for a scalar; an unknown size prints as "?", an unknown rank (-1) as
 * "<unknown>".
 */
char *muster_shape_to_string (int n_dims, const gint64 *dims);

/**
 * muster_tensor_new: (skip)
 *
 * A new tensor; its elements are not initialised. The dtype has a size (no strings) and the shape
 * is valid.
 */
MusterTensor *muster_tensor_new (MusterDType dtype, int n_dims, const gint64 *dims);

/**
 * muster_tensor_try_new: (skip)
 *
 * As above, from sizes that are not trusted: INVALID_ARGUMENT for a bad dtype or shape,
 * RESOURCE_EXHAUSTED where the memory isn't to be had.
 */
MusterTensor *muster_tensor_try_new (MusterDType dtype, int n_dims, const gint64 *dims,
                                     GError **error);

/**
 * muster_tensor_try_new_within: (skip)
 * @budget: (nullable)
 *
 * As above, the elements taken from a budget, over which it is RESOURCE_EXHAUSTED as well.
 */
MusterTensor *muster_tensor_try_new_within (MusterBudget *budget, MusterDType dtype, int n_dims,
                                            const gint64 *dims, GError **error);

/**
 * muster_tensor_new_from_data: (skip)
 *
 * A copy of size bytes of elements: INVALID_ARGUMENT where shape and size don't agree.
 */
MusterTensor *muster_tensor_new_from_data (MusterDType dtype, int n_dims, const gint64 *dims,
                                           const void *data, gsize size, GError **error);

/**
 * muster_tensor_new_from_bytes:
 * @dims: (array length=n_dims) (nullable)
 *
 * A view over bytes (which it keeps); a copy only where they are not aligned for the dtype. Errors
 * as above.
 *
 * Returns: (transfer full)
 */
MusterTensor *muster_tensor_new_from_bytes (MusterDType dtype, int n_dims, const gint64 *dims,
                                            GBytes *bytes, GError **error);

/**
 * muster_tensor_new_strings: (skip)
 *
 * A string tensor of n elements, each copied.
 */
MusterTensor *muster_tensor_new_strings (int n_dims, const gint64 *dims,
                                         const MusterString *strings);

/**
 * muster_tensor_try_new_strings: (skip)
 * @budget: (nullable)
 *
 * As above, from sizes that are not trusted: INVALID_ARGUMENT for a bad shape, RESOURCE_EXHAUSTED
 * over the budget or where the memory isn't to be had.
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
 * The same elements under another shape of as many (shares the memory).
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
 * Borrowed; n_dims of them.
 */
const gint64 *muster_tensor_dims (const MusterTensor *self);

/**
 * muster_tensor_shape:
 * @n_dims: (out): how many there are
 *
 * muster_tensor_dims () for languages that want to be told how long an array is.
 *
 * Returns: (array length=n_dims) (transfer full): the sizes of its dimensions
 */
gint64 *muster_tensor_shape (const MusterTensor *self, int *n_dims);

gsize muster_tensor_n_bytes (const MusterTensor *self); /* 0 for strings */

/**
 * muster_tensor_n_stored: (skip)
 *
 * The bytes that its elements take in memory: of strings a MusterString each and the texts, one
 * that is repeated without another between them once.
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
 * The elements, to be filled by the tensor's maker. Only while nobody else holds it and it owns its
 * memory.
 */
void *muster_tensor_data_mutable (MusterTensor *self);

/**
 * muster_tensor_is_exclusive: (skip)
 *
 * TRUE if the caller's is the only reference to the tensor and to its memory, and the memory may be
 * written: an in-place update is allowed then and only then.
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
 * All elements of a string tensor; borrowed, as their bytes are.
 */
const MusterString *muster_tensor_strings (const MusterTensor *self);

/**
 * muster_tensor_get_int64:
 * @value: (out)
 *
 * The element of a tensor that has only one, of any rank: of an integer type or bool (1 is true).
 * INVALID_ARGUMENT names the tensor's type and shape where it is another.
 */
gboolean muster_tensor_get_int64 (const MusterTensor *self, gint64 *value, GError **error);

/**
 * muster_tensor_get_double:
 * @value: (out)
 *
 * The same of any real number or bool; one that a double can't hold is rounded.
 */
gboolean muster_tensor_get_double (const MusterTensor *self, double *value, GError **error);

/**
 * muster_tensor_get_string:
 * @value: (out) (transfer full)
 *
 * The same of a string, as a copy; INVALID_ARGUMENT also for one with a NUL in it.
 */
gboolean muster_tensor_get_string (const MusterTensor *self, char **value, GError **error);

/* TRUE if dtype, shape and every element are the same, bit for bit. */
gboolean muster_tensor_equal (const MusterTensor *a, const MusterTensor *b);

/* The elements' memory as bytes, shared, not copied; empty for strings. */
GBytes *muster_tensor_to_bytes (MusterTensor *self);

/**
 * muster_tensor_append_element: (skip)
 *
 * For people: one element, as short as it reads back as the same; of a string at most so many
 * bytes.
 */
void muster_tensor_append_element (GString *text, const MusterTensor *self, gint64 i, gsize most);

/* For people: the values, cut after limit elements: "[1, 2, 3, …]". */
char *muster_tensor_to_string (const MusterTensor *self, gint64 limit);

G_END_DECLS
