// SPDX-License-Identifier: Apache-2.0
/* A tensor: immutable and counted (docs/decisions/0004). Its elements lie behind its head if
 * they are small, else in a buffer of the pool, in borrowed memory, or in somebody's GBytes. */
#include "graph/tensor.h"

#include "base/budget_private.h"
#include "base/error.h"
#include "base/memory_account_private.h"
#include "base/require_private.h"
#include "graph/buffer_pool_private.h"
#include "graph/tensor_private.h"

#include <string.h>

/* Where the elements lie. */
typedef enum {
  STORE_INLINE, /* behind the dims, in the tensor's own allocation */
  STORE_BUFFER, /* in a buffer of the pool */
  STORE_BYTES,  /* in a GBytes: read only */
  STORE_TENSOR, /* in another tensor, which is not STORE_TENSOR itself */
  STORE_LOAN,   /* in its caller's memory: read only */
} Store;

typedef struct {
  GDestroyNotify released;
  gpointer user_data;
} Loan;

struct _MusterTensor {
  gint ref_count; /* atomic */
  guint8 store;
  MusterDType dtype;
  int n_dims;
  gint64 n_elements;
  gsize n_stored; /* bytes at data: the elements, or a string tensor's table and texts */
  void *data;     /* STORE_INLINE: (not owned); MusterString[n_elements], then texts, for strings */
  gpointer owner; /* (owned) (nullable) the GBytes, MusterTensor or Loan that data lies in */
  gint64 dims[];
};

/* Small elements are stored inline, without a second allocation. Up to a cache line they aren't
 * aligned to one. */
#define INLINE_MAX  512
#define INLINE_LINE 64

G_DEFINE_BOXED_TYPE (MusterTensor, muster_tensor, muster_tensor_ref, muster_tensor_unref)

gint64
muster_shape_n_elements (int n_dims, const gint64 *dims)
{
  g_return_val_if_fail (n_dims <= 0 || dims != NULL, -1);
  gint64 n = 1;
  gboolean is_empty = FALSE, overflows = FALSE;
  for (int i = 0; i < n_dims; i++) {
    if (dims[i] < 0)
      return -1;
    if (dims[i] == 0)
      is_empty = TRUE;
    else if (__builtin_mul_overflow (n, dims[i], &n))
      overflows = TRUE;
  }
  if (overflows || n_dims < 0)
    return -1;
  return is_empty ? 0 : n;
}

char *
muster_shape_to_string (int n_dims, const gint64 *dims)
{
  g_return_val_if_fail (n_dims <= 0 || dims != NULL, NULL);
  if (n_dims < 0)
    return g_strdup ("<unknown>");
  GString *text = g_string_new ("[");
  for (int i = 0; i < n_dims; i++) {
    if (i > 0)
      g_string_append_c (text, ',');
    if (dims[i] < 0)
      g_string_append_c (text, '?');
    else
      g_string_append_printf (text, "%" G_GINT64_FORMAT, dims[i]);
  }
  g_string_append_c (text, ']');
  return g_string_free (text, FALSE);
}

/* Returns the size of a tensor's own allocation without its elements, if they aren't inline. */
static gsize
head_size (int n_dims)
{
  return sizeof (MusterTensor) + (gsize)n_dims * sizeof (gint64);
}

static gsize
inline_alignment (gsize n_stored)
{
  return n_stored <= INLINE_LINE ? 16 : INLINE_LINE;
}

static gsize
inline_capacity (gsize n_stored)
{
  return MAX (n_stored, 1) + inline_alignment (n_stored) - 1;
}

/* Returns the whole size of a tensor's own allocation. */
static gsize
own_size (int n_dims, gsize n_stored, gboolean is_inline)
{
  return head_size (n_dims) + (is_inline ? inline_capacity (n_stored) : 0);
}

/* A tensor whose own allocation is counted already, and whose data is the buffer (transfer full),
 * or, without one, inline room for n_stored bytes, or unset where with_data is FALSE. */
static MusterTensor *
assemble (MusterDType dtype, int n_dims, const gint64 *dims, gint64 n_elements, gsize n_stored,
          gboolean with_data, gpointer buffer)
{
  const gsize head = head_size (n_dims), alignment = inline_alignment (n_stored);
  const gboolean is_inline = with_data && buffer == NULL;
  MusterTensor *self = g_malloc (own_size (n_dims, n_stored, is_inline));
  self->ref_count = 1;
  self->store = is_inline ? STORE_INLINE : STORE_BUFFER;
  self->dtype = dtype;
  self->n_dims = n_dims;
  self->n_elements = n_elements;
  self->n_stored = n_stored;
  self->data = buffer;
  self->owner = NULL;
  if (n_dims > 0)
    memcpy (self->dims, dims, (gsize)n_dims * sizeof (gint64));
  if (is_inline)
    self->data = (void *)(((guintptr)self + head + alignment - 1) & ~(guintptr)(alignment - 1));
  return self;
}

static MusterTensor *
without_data (MusterDType dtype, int n_dims, const gint64 *dims, gint64 n_elements, gsize n_stored)
{
  muster_memory_add (MUSTER_MEMORY_TENSORS, head_size (n_dims));
  return assemble (dtype, n_dims, dims, n_elements, n_stored, FALSE, NULL);
}

/* Allocates a tensor with n_stored bytes. NULL if there isn't enough memory; the limit of memory
 * doesn't apply. */
static MusterTensor *
allocate (MusterDType dtype, int n_dims, const gint64 *dims, gint64 n_elements, gsize n_stored)
{
  gpointer buffer = NULL;
  if (n_stored > INLINE_MAX && (buffer = muster_buffer_alloc (n_stored)) == NULL)
    return NULL;
  muster_memory_add (MUSTER_MEMORY_TENSORS, own_size (n_dims, n_stored, buffer == NULL));
  return assemble (dtype, n_dims, dims, n_elements, n_stored, TRUE, buffer);
}

/* Checks a dtype and shape that aren't trusted; numbers only. */
static gboolean
check_shape (MusterDType dtype, int n_dims, const gint64 *dims, gint64 *n_elements, gsize *n_bytes,
             GError **error)
{
  const gsize size = muster_dtype_size (dtype);
  if (size == 0) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "A tensor of type %s (%d) has no elements of a fixed size",
                        muster_dtype_name (dtype), (int)dtype);
  }
  *n_elements = n_dims > MUSTER_MAX_DIMS ? -1 : muster_shape_n_elements (n_dims, dims);
  if (*n_elements < 0 || !g_size_checked_mul (n_bytes, (gsize)*n_elements, size) ||
      *n_bytes > G_MAXSSIZE) {
    g_autofree char *shape = muster_shape_to_string (MIN (n_dims, 16), dims);
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "invalid shape %s%s: a size is negative, or there are too many elements",
                        shape, n_dims > 16 ? "…" : "");
  }
  return TRUE;
}

MusterTensor *
muster_tensor_new (MusterDType dtype, int n_dims, const gint64 *dims)
{
  g_return_val_if_fail (n_dims <= 0 || dims != NULL, NULL);
  const gsize size = muster_dtype_size (dtype);
  const gint64 n_elements = muster_shape_n_elements (n_dims, dims);
  gsize n_bytes = 0;
  g_return_val_if_fail (size > 0, NULL);
  g_return_val_if_fail (n_dims <= MUSTER_MAX_DIMS && n_elements >= 0, NULL);
  MusterTensor *self = NULL;
  if (g_size_checked_mul (&n_bytes, (gsize)n_elements, size))
    self = allocate (dtype, n_dims, dims, n_elements, n_bytes);
  if (self == NULL)
    g_error ("not enough memory for a tensor of %" G_GINT64_FORMAT " elements", n_elements);
  return self;
}

/* Allocates like allocate (), but from the budget and within the limit of memory. */
static MusterTensor *
allocate_within (MusterBudget *budget, MusterDType dtype, int n_dims, const gint64 *dims,
                 gint64 n_elements, gsize n_bytes, GError **error)
{
  gpointer buffer = NULL;
  if (!muster_budget_take_owned (budget, n_bytes, error) ||
      (n_bytes > INLINE_MAX && (buffer = muster_buffer_try_alloc (n_bytes, error)) == NULL))
    return NULL;
  if (!muster_memory_take (MUSTER_MEMORY_TENSORS, own_size (n_dims, n_bytes, buffer == NULL),
                           error)) {
    muster_buffer_free (buffer, n_bytes);
    return NULL;
  }
  return assemble (dtype, n_dims, dims, n_elements, n_bytes, TRUE, buffer);
}

MusterTensor *
muster_tensor_try_new (MusterDType dtype, int n_dims, const gint64 *dims, GError **error)
{
  muster_require_array (error, NULL, dims, n_dims);
  return muster_tensor_try_new_within (NULL, dtype, n_dims, dims, error);
}

MusterTensor *
muster_tensor_try_new_within (MusterBudget *budget, MusterDType dtype, int n_dims,
                              const gint64 *dims, GError **error)
{
  muster_require_array (error, NULL, dims, n_dims);
  gint64 n_elements;
  gsize n_bytes;
  if (!check_shape (dtype, n_dims, dims, &n_elements, &n_bytes, error))
    return NULL;
  return allocate_within (budget, dtype, n_dims, dims, n_elements, n_bytes, error);
}

static gboolean
check_size (MusterDType dtype, int n_dims, const gint64 *dims, gsize n_bytes, gsize size,
            GError **error)
{
  if (n_bytes == size)
    return TRUE;
  g_autofree char *shape = muster_shape_to_string (n_dims, dims);
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "A %s tensor of shape %s takes %" G_GSIZE_FORMAT
                      " bytes, not %" G_GSIZE_FORMAT,
                      muster_dtype_name (dtype), shape, n_bytes, size);
}

MusterTensor *
muster_tensor_new_from_data (MusterDType dtype, int n_dims, const gint64 *dims, const void *data,
                             gsize size, GError **error)
{
  muster_require_array (error, NULL, dims, n_dims);
  muster_require_array (error, NULL, data, size);
  gint64 n_elements;
  gsize n_bytes;
  if (!check_shape (dtype, n_dims, dims, &n_elements, &n_bytes, error) ||
      !check_size (dtype, n_dims, dims, n_bytes, size, error))
    return NULL;
  MusterTensor *self = muster_tensor_try_new (dtype, n_dims, dims, error);
  if (self != NULL && size > 0)
    memcpy (self->data, data, size);
  return self;
}

/* The alignment of the element type: 8 for complex128's halves. */
static gboolean
is_aligned (const void *data, MusterDType dtype)
{
  return ((guintptr)data & (MIN (muster_dtype_size (dtype), 8) - 1)) == 0;
}

MusterTensor *
muster_tensor_new_from_bytes (MusterDType dtype, int n_dims, const gint64 *dims, GBytes *bytes,
                              GError **error)
{
  muster_require (error, NULL, bytes);
  gsize size;
  gconstpointer data = g_bytes_get_data (bytes, &size);
  gint64 n_elements;
  gsize n_bytes;
  if (!check_shape (dtype, n_dims, dims, &n_elements, &n_bytes, error) ||
      !check_size (dtype, n_dims, dims, n_bytes, size, error))
    return NULL;
  if (size == 0 || !is_aligned (data, dtype))
    return muster_tensor_new_from_data (dtype, n_dims, dims, data, size, error);
  MusterTensor *self = without_data (dtype, n_dims, dims, n_elements, size);
  self->store = STORE_BYTES;
  self->data = (void *)data;
  self->owner = g_bytes_ref (bytes);
  return self;
}

MusterTensor *
muster_tensor_new_borrowed (MusterDType dtype, int n_dims, const gint64 *dims, gconstpointer data,
                            gsize size, GDestroyNotify released, gpointer user_data, GError **error)
{
  muster_require_array (error, NULL, data, size);
  gint64 n_elements;
  gsize n_bytes;
  if (!check_shape (dtype, n_dims, dims, &n_elements, &n_bytes, error) ||
      !check_size (dtype, n_dims, dims, n_bytes, size, error))
    return NULL;
  MusterTensor *self;
  if (size == 0 || !is_aligned (data, dtype)) {
    self = muster_tensor_new_from_data (dtype, n_dims, dims, data, size, error);
    if (self != NULL && released != NULL)
      released (user_data);
    return self;
  }
  self = without_data (dtype, n_dims, dims, n_elements, size);
  self->store = STORE_LOAN;
  self->data = (void *)data;
  self->owner = g_memdup2 (&(Loan){released, user_data}, sizeof (Loan));
  return self;
}

static gboolean
is_borrowed (const MusterTensor *self)
{
  return self->store == STORE_LOAN ||
         (self->store == STORE_TENSOR && ((MusterTensor *)self->owner)->store == STORE_LOAN);
}

MusterTensor *
muster_tensor_keep (MusterTensor *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  if (!is_borrowed (self))
    return muster_tensor_ref (self);
  MusterTensor *copy = muster_tensor_new (self->dtype, self->n_dims, self->dims);
  memcpy (copy->data, self->data, self->n_stored);
  return copy;
}

/* Equal to the previous string: stored once, so that a tensor filled with one value stays small. */
static gboolean
is_repeated (const MusterString *strings, gint64 i)
{
  return i > 0 && strings[i].data == strings[i - 1].data && strings[i].size == strings[i - 1].size;
}

static void
copy_strings (MusterString *table, const MusterString *strings, gint64 n)
{
  char *text = (char *)(table + n);
  for (gint64 i = 0; i < n; i++) {
    if (is_repeated (strings, i)) {
      table[i] = table[i - 1];
      continue;
    }
    table[i] = (MusterString){text, strings[i].size};
    if (strings[i].size > 0)
      memcpy (text, strings[i].data, strings[i].size);
    text += strings[i].size;
  }
}

/* The bytes of n strings and their table. FALSE on overflow. */
static gboolean
size_strings (const MusterString *strings, gint64 n, gsize *size)
{
  gboolean fits = g_size_checked_mul (size, (gsize)n, sizeof (MusterString));
  for (gint64 i = 0; i < n && fits; i++)
    if (!is_repeated (strings, i))
      fits = g_size_checked_add (size, *size, strings[i].size);
  return fits;
}

MusterTensor *
muster_tensor_try_new_strings (MusterBudget *budget, int n_dims, const gint64 *dims,
                               const MusterString *strings, GError **error)
{
  muster_require_array (error, NULL, dims, n_dims);
  const gint64 n = n_dims > MUSTER_MAX_DIMS ? -1 : muster_shape_n_elements (n_dims, dims);
  gsize size = G_MAXSIZE;
  if (n < 0) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "invalid shape: a size is negative, or there are too many elements");
    return NULL;
  }
  muster_require_array (error, NULL, strings, n);
  if (!size_strings (strings, n, &size))
    size = G_MAXSIZE;
  MusterTensor *self = allocate_within (budget, MUSTER_STRING, n_dims, dims, n, size, error);
  if (self != NULL)
    copy_strings (self->data, strings, n);
  return self;
}

MusterTensor *
muster_tensor_new_strings (int n_dims, const gint64 *dims, const MusterString *strings)
{
  g_return_val_if_fail (n_dims <= MUSTER_MAX_DIMS && (n_dims <= 0 || dims != NULL), NULL);
  const gint64 n = muster_shape_n_elements (n_dims, dims);
  g_return_val_if_fail (n == 0 || (n > 0 && strings != NULL), NULL);
  g_autoptr (GError) error = NULL;
  MusterTensor *self = muster_tensor_try_new_strings (NULL, n_dims, dims, strings, &error);
  if (self == NULL)
    g_error ("%s", error->message);
  return self;
}

static MusterTensor *
new_scalar (MusterDType dtype, const void *value, gsize size)
{
  MusterTensor *self = allocate (dtype, 0, NULL, 1, size);
  memcpy (self->data, value, size);
  return self;
}

MusterTensor *
muster_tensor_new_float (float value)
{
  return new_scalar (MUSTER_FLOAT, &value, sizeof value);
}

MusterTensor *
muster_tensor_new_int32 (gint32 value)
{
  return new_scalar (MUSTER_INT32, &value, sizeof value);
}

MusterTensor *
muster_tensor_new_int64 (gint64 value)
{
  return new_scalar (MUSTER_INT64, &value, sizeof value);
}

MusterTensor *
muster_tensor_new_bool (gboolean value)
{
  const guint8 byte = value ? 1 : 0;
  return new_scalar (MUSTER_BOOL, &byte, sizeof byte);
}

MusterTensor *
muster_tensor_new_string (const char *text)
{
  g_return_val_if_fail (text != NULL, NULL);
  const MusterString string = {text, strlen (text)};
  return muster_tensor_new_strings (0, NULL, &string);
}

MusterTensor *
muster_tensor_new_strv (const char *const *strings)
{
  g_return_val_if_fail (strings != NULL, NULL);
  const gint64 n = g_strv_length ((char **)strings);
  g_autofree MusterString *table = g_new (MusterString, n);
  for (gint64 i = 0; i < n; i++)
    table[i] = (MusterString){strings[i], strlen (strings[i])};
  return muster_tensor_new_strings (1, &n, table);
}

MusterTensor *
muster_tensor_reshape (MusterTensor *self, int n_dims, const gint64 *dims)
{
  g_return_val_if_fail (self != NULL, NULL);
  g_return_val_if_fail (n_dims <= MUSTER_MAX_DIMS, NULL);
  g_return_val_if_fail (muster_shape_n_elements (n_dims, dims) == self->n_elements, NULL);
  MusterTensor *other = without_data (self->dtype, n_dims, dims, self->n_elements, self->n_stored);
  other->data = self->data;
  if (self->store == STORE_BYTES) {
    other->store = STORE_BYTES;
    other->owner = g_bytes_ref (self->owner);
  } else {
    other->store = STORE_TENSOR;
    other->owner = muster_tensor_ref (self->store == STORE_TENSOR ? self->owner : self);
  }
  return other;
}

MusterTensor *
muster_tensor_ref (MusterTensor *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  g_atomic_int_inc (&self->ref_count);
  return self;
}

static void
end_loan (Loan *loan)
{
  if (loan->released != NULL)
    loan->released (loan->user_data);
  g_free (loan);
}

void
muster_tensor_unref (MusterTensor *self)
{
  if (self == NULL || !g_atomic_int_dec_and_test (&self->ref_count))
    return;
  const gsize size = own_size (self->n_dims, self->n_stored, self->store == STORE_INLINE);
  switch ((Store)self->store) {
  case STORE_INLINE:
    break;
  case STORE_BUFFER:
    muster_buffer_free (self->data, self->n_stored);
    break;
  case STORE_BYTES:
    g_bytes_unref (self->owner);
    break;
  case STORE_TENSOR:
    muster_tensor_unref (self->owner);
    break;
  case STORE_LOAN:
    end_loan (self->owner);
    break;
  }
  g_free (self);
  muster_memory_release (MUSTER_MEMORY_TENSORS, size);
}

MusterDType
muster_tensor_dtype (const MusterTensor *self)
{
  g_return_val_if_fail (self != NULL, 0);
  return self->dtype;
}

int
muster_tensor_n_dims (const MusterTensor *self)
{
  g_return_val_if_fail (self != NULL, 0);
  return self->n_dims;
}

const gint64 *
muster_tensor_dims (const MusterTensor *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->dims;
}

gint64
muster_tensor_n_elements (const MusterTensor *self)
{
  g_return_val_if_fail (self != NULL, 0);
  return self->n_elements;
}

gsize
muster_tensor_n_bytes (const MusterTensor *self)
{
  g_return_val_if_fail (self != NULL, 0);
  return self->dtype == MUSTER_STRING ? 0 : self->n_stored;
}

gsize
muster_tensor_n_stored (const MusterTensor *self)
{
  g_return_val_if_fail (self != NULL, 0);
  return self->n_stored;
}

const void *
muster_tensor_data (const MusterTensor *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->dtype == MUSTER_STRING ? NULL : self->data;
}

void *
muster_tensor_data_mutable (MusterTensor *self)
{
  g_return_val_if_fail (self != NULL && self->dtype != MUSTER_STRING, NULL);
  g_return_val_if_fail (muster_tensor_is_exclusive (self), NULL);
  return self->data;
}

gboolean
muster_tensor_is_exclusive (const MusterTensor *self)
{
  g_return_val_if_fail (self != NULL, FALSE);
  if (g_atomic_int_get (&self->ref_count) != 1 || self->store == STORE_BYTES ||
      self->store == STORE_LOAN)
    return FALSE;
  if (self->store != STORE_TENSOR)
    return TRUE;
  /* The tensor that owns the memory lives on only through us. */
  const MusterTensor *owner = self->owner;
  return owner->store != STORE_LOAN && g_atomic_int_get (&owner->ref_count) == 1;
}

MusterString
muster_tensor_string (const MusterTensor *self, gint64 i)
{
  g_return_val_if_fail (self != NULL, (MusterString){0});
  const MusterString none = {"", 0};
  g_return_val_if_fail (self->dtype == MUSTER_STRING, none);
  g_return_val_if_fail (i >= 0 && i < self->n_elements, none);
  return ((const MusterString *)self->data)[i];
}

const MusterString *
muster_tensor_strings (const MusterTensor *self)
{
  g_return_val_if_fail (self != NULL && self->dtype == MUSTER_STRING, NULL);
  return self->data;
}

static gboolean
strings_equal (const MusterTensor *a, const MusterTensor *b)
{
  const MusterString *left = a->data, *right = b->data;
  for (gint64 i = 0; i < a->n_elements; i++)
    if (left[i].size != right[i].size ||
        (left[i].size > 0 && memcmp (left[i].data, right[i].data, left[i].size) != 0))
      return FALSE;
  return TRUE;
}

gboolean
muster_tensor_equal (const MusterTensor *a, const MusterTensor *b)
{
  g_return_val_if_fail (a != NULL && b != NULL, FALSE);
  if (a == b)
    return TRUE;
  if (a->dtype != b->dtype || a->n_dims != b->n_dims ||
      (a->n_dims > 0 && memcmp (a->dims, b->dims, (gsize)a->n_dims * sizeof (gint64)) != 0))
    return FALSE;
  if (a->dtype == MUSTER_STRING)
    return strings_equal (a, b);
  return a->n_stored == 0 || memcmp (a->data, b->data, a->n_stored) == 0;
}

gint64 *
muster_tensor_shape (const MusterTensor *self, int *n_dims)
{
  g_return_val_if_fail (self != NULL && n_dims != NULL, NULL);

  *n_dims = self->n_dims;
  return g_memdup2 (self->dims, (gsize)self->n_dims * sizeof *self->dims);
}

GBytes *
muster_tensor_to_bytes (MusterTensor *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  const gsize size = muster_tensor_n_bytes (self);
  if (size == 0)
    return g_bytes_new (NULL, 0);
  if (is_borrowed (self)) {
    g_autoptr (MusterTensor) copy = muster_tensor_keep (self); /* in pages that are there already */
    return muster_tensor_to_bytes (copy);
  }
  if (self->store == STORE_BYTES) {
    const guint8 *start = g_bytes_get_data (self->owner, NULL);
    return g_bytes_new_from_bytes (self->owner, (gsize)((guint8 *)self->data - start), size);
  }
  return g_bytes_new_with_free_func (self->data, size, (GDestroyNotify)muster_tensor_unref,
                                     muster_tensor_ref (self));
}
