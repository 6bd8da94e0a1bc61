// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/dtype.h"

#include <glib-object.h>

G_BEGIN_DECLS

/**
 * MUSTER_MAX_DIMS:
 *
 * The largest rank of a tensor, as in TensorFlow.
 */
#define MUSTER_MAX_DIMS 254

/**
 * MusterTensor:
 *
 * A dense array of one type, reference-counted and immutable once it is shared. Elements are in
 * row-major order, little-endian; a bool is one byte. A tensor owns its memory, or is a view of
 * other bytes (a received message, a mapped checkpoint), which it keeps alive, or
 * borrows them for a call ([ctor@Tensor.new_borrowed]).
 *
 * The creator fills a tensor through [method@Tensor.data_mutable] before it shares it. Threads: any
 * may read and count references; only the creator writes.
 */
typedef struct _MusterTensor MusterTensor;

#define MUSTER_TYPE_TENSOR (muster_tensor_get_type ())
GType muster_tensor_get_type (void);

/**
 * MusterString:
 * @data: its bytes, borrowed, not NUL-terminated
 * @size: their number
 *
 * An element of a string tensor. Other languages get one by [method@Tensor.string_bytes].
 */
typedef struct {
  const char *data;
  gsize size;
} MusterString;

/**
 * muster_shape_n_elements:
 * @n_dims: the rank
 * @dims: (array length=n_dims) (nullable): the sizes of the dimensions
 *
 * Counts the elements of a shape.
 *
 * Returns: their number, or -1 if a size is negative or the product overflows
 */
gint64 muster_shape_n_elements (int n_dims, const gint64 *dims);

/**
 * muster_shape_to_string:
 * @n_dims: the rank; -1: unknown
 * @dims: (array length=n_dims) (nullable): the sizes of the dimensions; -1: unknown
 *
 * Formats a shape: "[64,128]"; "[]" for a scalar. An unknown size is "?", an unknown rank
 * "<unknown>".
 *
 * Returns: (transfer full): the text
 */
char *muster_shape_to_string (int n_dims, const gint64 *dims);

/**
 * muster_tensor_new:
 * @dtype: the type of its elements, of a fixed size (no strings)
 * @n_dims: the rank
 * @dims: (array length=n_dims) (nullable): the sizes of the dimensions
 *
 * Creates a tensor with uninitialised elements. The shape must be valid.
 *
 * Returns: (transfer full): a tensor
 */
MusterTensor *muster_tensor_new (MusterDType dtype, int n_dims, const gint64 *dims);

/**
 * muster_tensor_try_new:
 * @dtype: the type of its elements
 * @n_dims: the rank
 * @dims: (array length=n_dims) (nullable): the sizes of the dimensions
 *
 * Creates a tensor with uninitialised elements from untrusted sizes. INVALID_ARGUMENT for a bad
 * dtype or shape, RESOURCE_EXHAUSTED if there isn't enough memory.
 *
 * Returns: (transfer full): a tensor
 */
MusterTensor *muster_tensor_try_new (MusterDType dtype, int n_dims, const gint64 *dims,
                                     GError **error);

/**
 * muster_tensor_new_from_data:
 * @dtype: the type of its elements
 * @n_dims: the rank
 * @dims: (array length=n_dims) (nullable): the sizes of the dimensions
 * @data: (array length=size) (element-type guint8): the elements' bytes
 * @size: their number
 *
 * Copies elements. INVALID_ARGUMENT if the shape and the size don't match.
 *
 * Returns: (transfer full): a tensor
 */
MusterTensor *muster_tensor_new_from_data (MusterDType dtype, int n_dims, const gint64 *dims,
                                           const void *data, gsize size, GError **error);

/**
 * muster_tensor_new_from_bytes:
 * @dtype: the type of its elements
 * @n_dims: the rank
 * @dims: (array length=n_dims) (nullable): the sizes of the dimensions
 * @bytes: the elements
 *
 * Creates a view of bytes, which it references; a copy if they aren't aligned for the dtype.
 * INVALID_ARGUMENT if the shape and the size don't match.
 *
 * Returns: (transfer full): a tensor
 */
MusterTensor *muster_tensor_new_from_bytes (MusterDType dtype, int n_dims, const gint64 *dims,
                                            GBytes *bytes, GError **error);

/**
 * muster_tensor_new_strings: (skip)
 * @n_dims: the rank
 * @dims: the sizes of the dimensions
 * @strings: the elements, one for each
 *
 * Creates a string tensor. The strings are copied. Other languages use
 * [ctor@Tensor.new_byte_strings].
 *
 * Returns: (transfer full): a tensor
 */
MusterTensor *muster_tensor_new_strings (int n_dims, const gint64 *dims,
                                         const MusterString *strings);

/**
 * muster_tensor_new_byte_strings:
 * @n_dims: the rank
 * @dims: (array length=n_dims) (nullable): the sizes of the dimensions
 * @strings: (element-type GBytes): the elements, in row-major order
 *
 * Creates a string tensor of any shape, whose elements may have any bytes. INVALID_ARGUMENT if the
 * shape and the number of strings don't match.
 *
 * Returns: (transfer full): a tensor
 */
MusterTensor *muster_tensor_new_byte_strings (int n_dims, const gint64 *dims, GPtrArray *strings,
                                              GError **error);

/**
 * muster_tensor_new_float:
 * @value: its element
 *
 * Creates a scalar of %MUSTER_FLOAT.
 *
 * Returns: (transfer full): a tensor
 */
MusterTensor *muster_tensor_new_float (float value);

/**
 * muster_tensor_new_int32:
 * @value: its element
 *
 * Creates a scalar of %MUSTER_INT32.
 *
 * Returns: (transfer full): a tensor
 */
MusterTensor *muster_tensor_new_int32 (gint32 value);

/**
 * muster_tensor_new_int64:
 * @value: its element
 *
 * Creates a scalar of %MUSTER_INT64.
 *
 * Returns: (transfer full): a tensor
 */
MusterTensor *muster_tensor_new_int64 (gint64 value);

/**
 * muster_tensor_new_bool:
 * @value: its element
 *
 * Creates a scalar of %MUSTER_BOOL.
 *
 * Returns: (transfer full): a tensor
 */
MusterTensor *muster_tensor_new_bool (gboolean value);

/**
 * muster_tensor_new_string:
 * @text: its element, NUL-terminated
 *
 * Creates a scalar of %MUSTER_STRING.
 *
 * Returns: (transfer full): a tensor
 */
MusterTensor *muster_tensor_new_string (const char *text);

/**
 * muster_tensor_new_strv:
 * @strings: (array zero-terminated=1): its elements, NUL-terminated
 *
 * Creates a vector of %MUSTER_STRING.
 *
 * Returns: (transfer full): a tensor
 */
MusterTensor *muster_tensor_new_strv (const char *const *strings);

/**
 * muster_tensor_reshape:
 * @self: a tensor
 * @n_dims: the rank
 * @dims: (array length=n_dims) (nullable): the sizes of the dimensions
 *
 * Gives the same elements another shape with as many elements. Shares the memory.
 *
 * Returns: (transfer full): a tensor
 */
MusterTensor *muster_tensor_reshape (MusterTensor *self, int n_dims, const gint64 *dims);

/**
 * muster_tensor_ref: (skip)
 * @self: a tensor
 *
 * Adds a reference.
 *
 * Returns: @self
 */
MusterTensor *muster_tensor_ref (MusterTensor *self);

/**
 * muster_tensor_unref: (skip)
 * @self: (nullable): a tensor
 *
 * Drops a reference; the last one frees the tensor.
 */
void muster_tensor_unref (MusterTensor *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterTensor, muster_tensor_unref)

/**
 * muster_tensor_dtype:
 * @self: a tensor
 *
 * The type of its elements.
 *
 * Returns: the type
 */
MusterDType muster_tensor_dtype (const MusterTensor *self);

/**
 * muster_tensor_n_dims:
 * @self: a tensor
 *
 * Its rank.
 *
 * Returns: the number of its dimensions; 0 for a scalar
 */
int muster_tensor_n_dims (const MusterTensor *self);

/**
 * muster_tensor_n_elements:
 * @self: a tensor
 *
 * The number of its elements.
 *
 * Returns: the product of the sizes of its dimensions
 */
gint64 muster_tensor_n_elements (const MusterTensor *self);

/**
 * muster_tensor_dims: (skip)
 * @self: a tensor
 *
 * The sizes of its dimensions, borrowed: n_dims of them. Other languages use [method@Tensor.shape].
 *
 * Returns: the sizes
 */
const gint64 *muster_tensor_dims (const MusterTensor *self);

/**
 * muster_tensor_shape:
 * @self: a tensor
 * @n_dims: (out): the number of dimensions
 *
 * The sizes of its dimensions as a list, for bindings, which need the length of an array.
 *
 * Returns: (array length=n_dims) (transfer full): the sizes of its dimensions
 */
gint64 *muster_tensor_shape (const MusterTensor *self, int *n_dims);

/**
 * muster_tensor_n_bytes:
 * @self: a tensor
 *
 * The size of its elements.
 *
 * Returns: bytes; 0 for strings
 */
gsize muster_tensor_n_bytes (const MusterTensor *self);

/**
 * muster_tensor_n_stored:
 * @self: a tensor
 *
 * The bytes of its elements in memory. For strings: a [struct@String] for each, and the texts. A
 * run of equal strings may be stored as one text.
 *
 * Returns: bytes
 */
gsize muster_tensor_n_stored (const MusterTensor *self);

/**
 * muster_tensor_data:
 * @self: a tensor
 *
 * The address of its elements, borrowed from the tensor. For a language with pointers or a view of
 * memory; [method@Tensor.to_bytes] keeps the memory alive.
 *
 * Returns: (type gpointer) (nullable): the elements; %NULL for strings
 */
const void *muster_tensor_data (const MusterTensor *self);

/**
 * muster_tensor_data_mutable:
 * @self: a tensor
 *
 * The address of its elements, for the creator to fill. Only while nobody else references the
 * tensor and it owns its memory.
 *
 * Returns: (type gpointer) (nullable): the elements; %NULL for strings
 */
void *muster_tensor_data_mutable (MusterTensor *self);

/**
 * muster_tensor_is_exclusive:
 * @self: a tensor
 *
 * Tests whether the caller holds the only reference to the tensor and to its memory, and the memory
 * is writable. Only then may it be updated in place.
 *
 * Returns: %TRUE if so
 */
gboolean muster_tensor_is_exclusive (const MusterTensor *self);

/**
 * muster_tensor_string: (skip)
 * @self: a tensor
 * @i: the index of an element, in row-major order
 *
 * An element of a string tensor; its bytes are borrowed from the tensor. Other languages use
 * [method@Tensor.string_bytes].
 *
 * Returns: the element
 */
MusterString muster_tensor_string (const MusterTensor *self, gint64 i);

/**
 * muster_tensor_strings: (skip)
 * @self: a tensor
 *
 * All elements of a string tensor, borrowed with their bytes.
 *
 * Returns: the elements
 */
const MusterString *muster_tensor_strings (const MusterTensor *self);

/**
 * muster_tensor_string_bytes:
 * @self: a tensor
 * @i: the index of an element, in row-major order
 *
 * An element of a string tensor, as a copy. INVALID_ARGUMENT for another type, or if there is no
 * such element.
 *
 * Returns: (transfer full): its bytes
 */
GBytes *muster_tensor_string_bytes (const MusterTensor *self, gint64 i, GError **error);

/**
 * muster_tensor_get_int64:
 * @self: a tensor
 * @value: (out): its element
 *
 * Reads the only element of a tensor of an integer type or bool (TRUE is 1), of any rank.
 * INVALID_ARGUMENT, which names the tensor's type and shape, for any other tensor.
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_tensor_get_int64 (const MusterTensor *self, gint64 *value, GError **error);

/**
 * muster_tensor_get_double:
 * @self: a tensor
 * @value: (out): its element
 *
 * Reads the only element of a tensor of a real number or bool, of any rank. A value that a double
 * can't represent is rounded. INVALID_ARGUMENT, which names the tensor's type and shape, for any
 * other tensor.
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_tensor_get_double (const MusterTensor *self, double *value, GError **error);

/**
 * muster_tensor_get_string:
 * @self: a tensor
 * @value: (out) (transfer full): its element
 *
 * Reads the only element of a string tensor, of any rank, as a copy. INVALID_ARGUMENT for any other
 * tensor, and if the string contains a NUL.
 *
 * Returns: %TRUE, or %FALSE with an error
 */
gboolean muster_tensor_get_string (const MusterTensor *self, char **value, GError **error);

/**
 * muster_tensor_equal:
 * @a: a tensor
 * @b: another
 *
 * Compares two tensors.
 *
 * Returns: %TRUE if the dtype, the shape and all bits of the elements are the same
 */
gboolean muster_tensor_equal (const MusterTensor *a, const MusterTensor *b);

/**
 * muster_tensor_to_bytes:
 * @self: a tensor
 *
 * The elements' memory, shared, not copied; empty for strings.
 *
 * Returns: (transfer full): the bytes, which keep the memory alive
 */
GBytes *muster_tensor_to_bytes (MusterTensor *self);

/**
 * muster_tensor_append_element:
 * @text: where to append
 * @self: a tensor
 * @i: the index of an element, in row-major order
 * @most: the bytes of a string to append at most
 *
 * Appends one element as text: a number with the fewest digits that read back as the same, at most
 * @most bytes of a string.
 */
void muster_tensor_append_element (GString *text, const MusterTensor *self, gint64 i, gsize most);

/**
 * muster_tensor_to_string:
 * @self: a tensor
 * @limit: the number of elements at most
 *
 * Formats the values: "[1, 2, 3, …]".
 *
 * Returns: (transfer full): the text
 */
char *muster_tensor_to_string (const MusterTensor *self, gint64 limit);

/**
 * muster_tensor_new_borrowed:
 * @dtype: the type of its elements, one of fixed size
 * @n_dims: the number of dimensions
 * @dims: (array length=n_dims) (nullable): their sizes
 * @data: the elements' memory, aligned or not
 * @size: its bytes
 * @released: (scope async) (closure user_data) (nullable): called once, on any thread, when nobody
 *   references the memory any more
 * @user_data: for @released
 * @error: return location for an error
 *
 * A tensor over memory that its caller lends for the length of a call, to feed without a copy.
 * What outlives a step of muster's engine (a variable's value, a fetched tensor, an element of a
 * queue) is a copy: after the call the caller may change the memory. If it isn't aligned for the
 * dtype, the tensor is a copy, and @released has been called. On failure @released isn't called.
 *
 * Returns: (transfer full): a tensor; INVALID_ARGUMENT if the shape and the size don't match
 */
MusterTensor *muster_tensor_new_borrowed (MusterDType dtype, int n_dims, const gint64 *dims,
                                          gconstpointer data, gsize size, GDestroyNotify released,
                                          gpointer user_data, GError **error);

/**
 * muster_tensor_keep:
 * @self: a tensor
 *
 * The tensor, to be kept beyond the call that it was passed to: another reference, or a copy if its
 * memory is borrowed (muster_tensor_new_borrowed ()).
 *
 * Returns: (transfer full): a tensor that owns its memory
 */
MusterTensor *muster_tensor_keep (MusterTensor *self);

/**
 * muster_tensor_new_packed_strings:
 * @n_dims: the number of dimensions
 * @dims: (array length=n_dims) (nullable): their sizes
 * @texts: all strings, one behind the other
 * @ends: (array length=n_ends) (nullable): where each ends in @texts, in bytes
 * @n_ends: the number of strings
 * @error: return location for an error
 *
 * A string tensor for bindings, which can't make #MusterString. The strings are copied and may
 * contain any bytes.
 *
 * Returns: (transfer full): a tensor; INVALID_ARGUMENT if the sizes don't match
 */
MusterTensor *muster_tensor_new_packed_strings (int n_dims, const gint64 *dims, GBytes *texts,
                                                const gint64 *ends, gsize n_ends, GError **error);

/**
 * muster_tensor_pack_strings:
 * @self: a string tensor
 * @ends: (out) (array length=n_ends) (transfer full): where each string ends, in bytes
 * @n_ends: (out): the number of strings
 *
 * All strings of a string tensor, one behind the other: the reverse of
 * muster_tensor_new_packed_strings ().
 *
 * Returns: (transfer full): the strings' bytes
 */
GBytes *muster_tensor_pack_strings (const MusterTensor *self, gint64 **ends, gsize *n_ends);

G_END_DECLS
