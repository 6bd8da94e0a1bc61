// SPDX-License-Identifier: Apache-2.0
/* Reads and writes TensorProto by hand, because tensors are large. Sizes that a message claims
 * are checked against its bytes before memory is taken. */
#include "graph/tensor_proto_private.h"

#include "base/budget_private.h"
#include "base/error.h"
#include "base/protowire_private.h"
#include "graph/tensor_private.h"

/* TensorProto's fields, and those of TensorShapeProto. */
enum {
  FIELD_DTYPE = 1,
  FIELD_SHAPE = 2,
  FIELD_CONTENT = 4,
  FIELD_FLOAT = 5,
  FIELD_DOUBLE = 6,
  FIELD_INT = 7,
  FIELD_STRING = 8,
  FIELD_SCOMPLEX = 9,
  FIELD_INT64 = 10,
  FIELD_BOOL = 11,
  FIELD_DCOMPLEX = 12,
  FIELD_HALF = 13,
  FIELD_UINT32 = 16,
  FIELD_UINT64 = 17,

  SHAPE_DIM = 2,
  SHAPE_UNKNOWN_RANK = 3,
  DIM_SIZE = 1,
};

/* Elements below this size are copied: a view of a few would keep a whole message alive. */
#define VIEW_FROM 4096

/* The message taken apart; everything in it is borrowed. */
typedef struct {
  const guint8 *data;
  gsize size;
  MusterDType dtype;
  gboolean unknown_rank;
  int n_dims;
  gint64 dims[MUSTER_MAX_DIMS];
  const guint8 *content;
  gsize content_size;
  gint64 n_elements;
  gsize *budget; /* what may be filled in */
} Parts;

static gboolean refuse_tensor (GError **error, const char *format, ...) G_GNUC_PRINTF (2, 3);

static gboolean
refuse_tensor (GError **error, const char *format, ...)
{
  va_list arguments;
  va_start (arguments, format);
  g_autofree char *why = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "Reading a tensor: %s", why);
}

static gboolean
read_dim (Parts *parts, const MusterProtoField *dim, GError **error)
{
  MusterProtoReader reader = muster_proto_reader (dim->data, dim->size);
  MusterProtoField field;
  gint64 size = 0;
  while (muster_proto_read_field (&reader, &field))
    if (field.number == DIM_SIZE && field.type == MUSTER_WIRE_VARINT)
      size = (gint64)field.value;
  if (!muster_proto_at_end (&reader))
    return refuse_tensor (error, "its shape is malformed");
  if (parts->n_dims == MUSTER_MAX_DIMS)
    return refuse_tensor (error, "its shape has more than %d dimensions", MUSTER_MAX_DIMS);
  parts->dims[parts->n_dims++] = size;
  return TRUE;
}

static gboolean
read_shape (Parts *parts, const MusterProtoField *shape, GError **error)
{
  MusterProtoReader reader = muster_proto_reader (shape->data, shape->size);
  MusterProtoField field;
  while (muster_proto_read_field (&reader, &field)) {
    if (field.number == SHAPE_DIM && field.type == MUSTER_WIRE_BYTES) {
      if (!read_dim (parts, &field, error))
        return FALSE;
    } else if (field.number == SHAPE_UNKNOWN_RANK && field.type == MUSTER_WIRE_VARINT) {
      parts->unknown_rank = field.value != 0;
    }
  }
  return muster_proto_at_end (&reader) || refuse_tensor (error, "its shape is malformed");
}

static gboolean
read_parts (Parts *parts, GError **error)
{
  MusterProtoReader reader = muster_proto_reader (parts->data, parts->size);
  MusterProtoField field;
  while (muster_proto_read_field (&reader, &field)) {
    if (field.number == FIELD_DTYPE && field.type == MUSTER_WIRE_VARINT) {
      parts->dtype = (MusterDType)MIN (field.value, G_MAXINT);
    } else if (field.number == FIELD_SHAPE && field.type == MUSTER_WIRE_BYTES) {
      if (!read_shape (parts, &field, error))
        return FALSE;
    } else if (field.number == FIELD_CONTENT && field.type == MUSTER_WIRE_BYTES) {
      parts->content = field.data;
      parts->content_size = field.size;
    }
  }
  return muster_proto_at_end (&reader) || refuse_tensor (error, "it is malformed or truncated");
}

static gboolean
check_parts (Parts *parts, GError **error)
{
  if (!muster_dtype_is_supported (parts->dtype))
    return refuse_tensor (error, "its type %s (%d) is not supported",
                          muster_dtype_name (parts->dtype), (int)parts->dtype);
  if (parts->unknown_rank)
    return refuse_tensor (error, "its shape is unknown");
  parts->n_elements = muster_shape_n_elements (parts->n_dims, parts->dims);
  if (parts->n_elements < 0) {
    g_autofree char *shape = muster_shape_to_string (MIN (parts->n_dims, 16), parts->dims);
    return refuse_tensor (
        error, "invalid shape %s: a size is unknown, or there are too many elements", shape);
  }
  return TRUE;
}

/* --- typed fields --- */

/* One run over the values of the field that fits the dtype. */
typedef struct {
  guint32 number;  /* the field */
  guint8 wire;     /* a value's wire type */
  guint8 per;      /* values per element */
  guint8 size;     /* of a value in the tensor */
  gint64 n_values; /* room */
  gint64 n_read;   /* so far; may exceed n_values, in which case values aren't stored any more */
  guint8 *out;
} Values;

static gboolean
values_for (MusterDType dtype, Values *values)
{
  static const struct {
    MusterDType dtype;
    guint8 number, wire, per, size;
  } rows[] = {
      {MUSTER_FLOAT, FIELD_FLOAT, MUSTER_WIRE_FIXED32, 1, 4},
      {MUSTER_DOUBLE, FIELD_DOUBLE, MUSTER_WIRE_FIXED64, 1, 8},
      {MUSTER_INT32, FIELD_INT, MUSTER_WIRE_VARINT, 1, 4},
      {MUSTER_UINT8, FIELD_INT, MUSTER_WIRE_VARINT, 1, 1},
      {MUSTER_INT16, FIELD_INT, MUSTER_WIRE_VARINT, 1, 2},
      {MUSTER_INT8, FIELD_INT, MUSTER_WIRE_VARINT, 1, 1},
      {MUSTER_UINT16, FIELD_INT, MUSTER_WIRE_VARINT, 1, 2},
      {MUSTER_COMPLEX64, FIELD_SCOMPLEX, MUSTER_WIRE_FIXED32, 2, 4},
      {MUSTER_INT64, FIELD_INT64, MUSTER_WIRE_VARINT, 1, 8},
      {MUSTER_BOOL, FIELD_BOOL, MUSTER_WIRE_VARINT, 1, 1},
      {MUSTER_COMPLEX128, FIELD_DCOMPLEX, MUSTER_WIRE_FIXED64, 2, 8},
      {MUSTER_HALF, FIELD_HALF, MUSTER_WIRE_VARINT, 1, 2},
      {MUSTER_BFLOAT16, FIELD_HALF, MUSTER_WIRE_VARINT, 1, 2},
      {MUSTER_UINT32, FIELD_UINT32, MUSTER_WIRE_VARINT, 1, 4},
      {MUSTER_UINT64, FIELD_UINT64, MUSTER_WIRE_VARINT, 1, 8},
  };
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++)
    if (rows[i].dtype == dtype) {
      *values = (Values){
          .number = rows[i].number, .wire = rows[i].wire, .per = rows[i].per, .size = rows[i].size};
      return TRUE;
    }
  return FALSE;
}

/* Little-endian: the low bytes are the value. */
static inline void
store_value (Values *values, guint64 value)
{
  if (values->number == FIELD_BOOL)
    value = value != 0;
  value = GUINT64_TO_LE (value);
  if (values->out != NULL && values->n_read < values->n_values)
    memcpy (values->out + values->n_read * values->size, &value, values->size);
  values->n_read++;
}

static gboolean
store_packed (Values *values, const MusterProtoField *field)
{
  if (values->wire == MUSTER_WIRE_VARINT) {
    MusterProtoReader reader = muster_proto_reader (field->data, field->size);
    guint64 value;
    while (!muster_proto_at_end (&reader)) {
      if (!muster_proto_read_varint (&reader, &value))
        return FALSE;
      store_value (values, value);
    }
    return TRUE;
  }
  if (field->size % values->size != 0)
    return FALSE;
  const gint64 n = (gint64)(field->size / values->size);
  const gint64 fits = MIN (n, values->n_values - values->n_read);
  if (values->out != NULL && fits > 0)
    memcpy (values->out + values->n_read * values->size, field->data, (gsize)(fits * values->size));
  values->n_read += n;
  return TRUE;
}

/* Goes over the typed values; stores them where out is set, and counts them in any case. */
static gboolean
run_over_values (const Parts *parts, Values *values, GError **error)
{
  MusterProtoReader reader = muster_proto_reader (parts->data, parts->size);
  MusterProtoField field;
  values->n_read = 0;
  while (muster_proto_read_field (&reader, &field)) {
    if (field.number != values->number)
      continue;
    if (field.type == values->wire)
      store_value (values, field.value);
    else if (field.type != MUSTER_WIRE_BYTES || !store_packed (values, &field))
      return refuse_tensor (error, "its values are malformed");
  }
  return TRUE;
}

/* element_size is the size of a missing element that is filled in. */
static gboolean
check_count (const Parts *parts, gint64 n_read, guint per, gsize element_size, GError **error)
{
  gsize n_bytes;
  if (n_read % per != 0)
    return refuse_tensor (error, "half of a complex number is missing");
  if (n_read / per >= parts->n_elements) /* TensorFlow ignores spare ones, too */
    return TRUE;
  if (!g_size_checked_mul (&n_bytes, (gsize)parts->n_elements, element_size) ||
      n_bytes > *parts->budget)
    return muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                        "Reading a tensor: %" G_GINT64_FORMAT " values for %" G_GINT64_FORMAT
                        " elements, too many to fill in",
                        n_read / per, parts->n_elements);
  *parts->budget -= n_bytes;
  return TRUE;
}

/* The last element again and again, doubling what is copied. */
static void
repeat_last (guint8 *data, gsize element_size, gsize n_given, gsize n)
{
  if (n_given == 0) {
    memset (data, 0, n * element_size);
    return;
  }
  guint8 *filled = data + (n_given - 1) * element_size;
  gsize n_filled = 1;
  const gsize wanted = n - n_given + 1;
  while (n_filled < wanted) {
    const gsize step = MIN (n_filled, wanted - n_filled);
    memcpy (filled + n_filled * element_size, filled, step * element_size);
    n_filled += step;
  }
}

static MusterTensor *
read_typed (const Parts *parts, GError **error)
{
  Values values;
  const gsize element_size = muster_dtype_size (parts->dtype);
  if (!values_for (parts->dtype, &values)) {
    refuse_tensor (error, "its type %s has no values", muster_dtype_name (parts->dtype));
    return NULL;
  }
  if (!run_over_values (parts, &values, error) ||
      !check_count (parts, values.n_read, values.per, element_size, error))
    return NULL;
  g_autoptr (MusterTensor) tensor =
      muster_tensor_try_new (parts->dtype, parts->n_dims, parts->dims, error);
  if (tensor == NULL)
    return NULL;
  values.out = muster_tensor_data_mutable (tensor);
  values.n_values = parts->n_elements * values.per;
  (void)run_over_values (parts, &values, NULL); /* succeeded before */
  if (values.n_read < values.n_values)
    repeat_last (values.out, element_size, (gsize)(values.n_read / values.per),
                 (gsize)parts->n_elements);
  return g_steal_pointer (&tensor);
}

/* *last becomes the size of the last, which stands for missing ones. */
static gint64
count_strings (const Parts *parts, gsize *last)
{
  MusterProtoReader reader = muster_proto_reader (parts->data, parts->size);
  MusterProtoField field;
  gint64 n = 0;
  *last = 0;
  while (muster_proto_read_field (&reader, &field))
    if (field.number == FIELD_STRING && field.type == MUSTER_WIRE_BYTES) {
      *last = field.size;
      n++;
    }
  return n;
}

/* TensorFlow's servers put strings into tensor_content as well: each one's length as a varint, then
 * the bytes of all, one after another. */
static gboolean
cut_string_content (const Parts *parts, MusterString *strings, GError **error)
{
  MusterProtoReader reader = muster_proto_reader (parts->content, parts->content_size);
  for (gint64 i = 0; i < parts->n_elements; i++) {
    guint64 size;
    if (!muster_proto_read_varint (&reader, &size) || size > parts->content_size)
      return refuse_tensor (error, "the lengths of its strings are malformed");
    strings[i].size = (gsize)size;
  }
  const char *at = (const char *)reader.at;
  gsize left = (gsize)(reader.end - reader.at);
  for (gint64 i = 0; i < parts->n_elements; i++) {
    if (strings[i].size > left)
      return refuse_tensor (error, "its strings are truncated");
    strings[i].data = at;
    at += strings[i].size;
    left -= strings[i].size;
  }
  return left == 0 || refuse_tensor (error, "%" G_GSIZE_FORMAT " bytes follow its strings", left);
}

/* One field each; the last stands for those that are missing. */
static void
gather_strings (const Parts *parts, MusterString *strings)
{
  const gint64 n = parts->n_elements;
  gint64 i = 0;
  MusterProtoReader reader = muster_proto_reader (parts->data, parts->size);
  MusterProtoField field;
  while (i < n && muster_proto_read_field (&reader, &field))
    if (field.number == FIELD_STRING && field.type == MUSTER_WIRE_BYTES)
      strings[i++] = (MusterString){(const char *)field.data, field.size};
  if (i == 0 && n > 0)
    strings[i++] = (MusterString){"", 0};
  for (; i < n; i++)
    strings[i] = strings[i - 1];
}

static gboolean
check_string_count (const Parts *parts, GError **error)
{
  if (parts->content_size == 0) {
    gsize last;
    const gint64 n = count_strings (parts, &last);
    return check_count (parts, n, 1, sizeof (MusterString) + last, error);
  }
  /* each has a length of at least a byte */
  return (guint64)parts->n_elements <= parts->content_size ||
         refuse_tensor (error, "it has %" G_GSIZE_FORMAT " bytes for %" G_GINT64_FORMAT " strings",
                        parts->content_size, parts->n_elements);
}

static MusterTensor *
read_strings (const Parts *parts, GError **error)
{
  const gint64 n = parts->n_elements;
  if (!check_string_count (parts, error))
    return NULL;
  g_autofree MusterString *strings = g_try_new (MusterString, MAX (n, 1));
  if (strings == NULL) {
    muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                 "not enough memory for %" G_GINT64_FORMAT " strings", n);
    return NULL;
  }
  if (parts->content_size == 0)
    gather_strings (parts, strings);
  else if (!cut_string_content (parts, strings, error))
    return NULL;
  return muster_tensor_try_new_strings (NULL, parts->n_dims, parts->dims, strings, error);
}

static MusterTensor *
read_content (const Parts *parts, GBytes *owner, GError **error)
{
  if (owner == NULL || parts->content_size < VIEW_FROM)
    return muster_tensor_new_from_data (parts->dtype, parts->n_dims, parts->dims, parts->content,
                                        parts->content_size, error);
  const guint8 *start = g_bytes_get_data (owner, NULL);
  g_autoptr (GBytes) content =
      g_bytes_new_from_bytes (owner, (gsize)(parts->content - start), parts->content_size);
  return muster_tensor_new_from_bytes (parts->dtype, parts->n_dims, parts->dims, content, error);
}

MusterTensor *
muster_tensor_proto_read (const void *data, gsize size, GBytes *owner, GError **error)
{
  gsize budget = MUSTER_MAX_EXPANSION;
  return muster_tensor_proto_read_within (data, size, owner, &budget, error);
}

MusterTensor *
muster_tensor_proto_read_within (const void *data, gsize size, GBytes *owner, gsize *budget,
                                 GError **error)
{
  Parts parts;
  /* The dims aren't cleared, because they are large, and written before they are read. */
  memset (&parts, 0, G_STRUCT_OFFSET (Parts, dims));
  parts.data = data;
  parts.size = size;
  parts.budget = budget;
  parts.content = NULL;
  parts.content_size = 0;
  if (!read_parts (&parts, error) || !check_parts (&parts, error))
    return NULL;
  if (parts.dtype == MUSTER_STRING)
    return read_strings (&parts, error);
  if (parts.content_size > 0)
    return read_content (&parts, owner, error);
  return read_typed (&parts, error);
}

/* --- writing --- */

static gsize
dim_size (gint64 size)
{
  return size == 0 ? 0 : 1 + muster_proto_varint_size ((guint64)size);
}

static gsize
shape_size (const MusterTensor *tensor)
{
  gsize size = 0;
  for (int i = 0; i < muster_tensor_n_dims (tensor); i++)
    size += muster_proto_field_size (SHAPE_DIM, dim_size (muster_tensor_dims (tensor)[i]));
  return size;
}

static gsize
content_size (const MusterTensor *tensor)
{
  gsize size = 0;
  if (muster_tensor_dtype (tensor) != MUSTER_STRING) {
    const gsize n_bytes = muster_tensor_n_bytes (tensor);
    return n_bytes > 0 ? muster_proto_field_size (FIELD_CONTENT, n_bytes) : 0;
  }
  for (gint64 i = 0; i < muster_tensor_n_elements (tensor); i++)
    size += muster_proto_field_size (FIELD_STRING, muster_tensor_string (tensor, i).size);
  return size;
}

gsize
muster_tensor_proto_size (const MusterTensor *tensor)
{
  return 1 + muster_proto_varint_size (muster_tensor_dtype (tensor)) +
         muster_proto_field_size (FIELD_SHAPE, shape_size (tensor)) + content_size (tensor);
}

static void
put_shape (GByteArray *out, const MusterTensor *tensor)
{
  muster_proto_put_head (out, FIELD_SHAPE, shape_size (tensor));
  for (int i = 0; i < muster_tensor_n_dims (tensor); i++) {
    const gint64 size = muster_tensor_dims (tensor)[i];
    muster_proto_put_head (out, SHAPE_DIM, dim_size (size));
    muster_proto_put_uint (out, DIM_SIZE, (guint64)size);
  }
}

/* Below this a copy costs less than a GBytes. */
#define BY_REFERENCE_FROM 4096

static void
put_string (MusterRope *rope, MusterTensor *tensor, MusterString string)
{
  if (string.size < BY_REFERENCE_FROM) {
    muster_proto_put_bytes (muster_rope_tail (rope), FIELD_STRING, string.data, string.size);
    return;
  }
  muster_proto_put_head (muster_rope_tail (rope), FIELD_STRING, string.size);
  g_autoptr (GBytes) bytes = g_bytes_new_with_free_func (
      string.data, string.size, (GDestroyNotify)muster_tensor_unref, muster_tensor_ref (tensor));
  muster_rope_append (rope, bytes);
}

/* The cost of a piece of a message whose bytes are elsewhere. */
#define PIECE_SIZE 256

gsize
muster_tensor_proto_copied_size (const MusterTensor *tensor)
{
  const gsize size = muster_tensor_proto_size (tensor), n_bytes = muster_tensor_n_bytes (tensor);
  gsize by_reference = n_bytes >= BY_REFERENCE_FROM ? n_bytes - PIECE_SIZE : 0;
  for (gint64 i = 0;
       muster_tensor_dtype (tensor) == MUSTER_STRING && i < muster_tensor_n_elements (tensor);
       i++) {
    const gsize own = muster_tensor_string (tensor, i).size;
    by_reference += own >= BY_REFERENCE_FROM ? own - PIECE_SIZE : 0;
  }
  return size - by_reference;
}

static void
put_proto (MusterRope *rope, MusterTensor *tensor)
{
  const gsize n_bytes = muster_tensor_n_bytes (tensor);
  GByteArray *out = muster_rope_tail (rope);
  muster_proto_put_uint (out, FIELD_DTYPE, muster_tensor_dtype (tensor));
  put_shape (out, tensor);
  if (muster_tensor_dtype (tensor) == MUSTER_STRING) {
    for (gint64 i = 0; i < muster_tensor_n_elements (tensor); i++)
      put_string (rope, tensor, muster_tensor_string (tensor, i));
  } else if (n_bytes >= BY_REFERENCE_FROM) {
    muster_proto_put_head (out, FIELD_CONTENT, n_bytes);
    g_autoptr (GBytes) bytes = muster_tensor_to_bytes (tensor);
    muster_rope_append (rope, bytes);
  } else if (n_bytes > 0) {
    muster_proto_put_bytes (out, FIELD_CONTENT, muster_tensor_data (tensor), n_bytes);
  }
}

void
muster_tensor_proto_put (MusterRope *out, guint32 number, MusterTensor *tensor)
{
  muster_proto_put_head (muster_rope_tail (out), number, muster_tensor_proto_size (tensor));
  put_proto (out, tensor);
}

/* Writes what comes before the elements: a few hundred dimensions at most. */
static GByteArray *
write_head (const MusterTensor *tensor)
{
  GByteArray *head = g_byte_array_new ();
  muster_proto_put_uint (head, FIELD_DTYPE, muster_tensor_dtype (tensor));
  put_shape (head, tensor);
  return head;
}

static void
store_elements (guint8 *at, const MusterTensor *tensor)
{
  const gsize n_bytes = muster_tensor_n_bytes (tensor);
  if (n_bytes > 0)
    memcpy (muster_proto_store_head (at, FIELD_CONTENT, n_bytes), muster_tensor_data (tensor),
            n_bytes);
  if (muster_tensor_dtype (tensor) != MUSTER_STRING)
    return;
  for (gint64 i = 0; i < muster_tensor_n_elements (tensor); i++) {
    const MusterString string = muster_tensor_string (tensor, i);
    at = muster_proto_store_head (at, FIELD_STRING, string.size);
    if (string.size > 0)
      memcpy (at, string.data, string.size);
    at += string.size;
  }
}

GBytes *
muster_tensor_proto_try_write (const MusterTensor *tensor, MusterBudget *budget, GError **error)
{
  const gsize size = muster_tensor_proto_size (tensor);
  g_autoptr (GByteArray) head = write_head (tensor);
  guint8 *bytes = muster_budget_alloc (budget, size, 1, error);
  if (bytes == NULL)
    return NULL;
  memcpy (bytes, head->data, head->len);
  store_elements (bytes + head->len, tensor);
  return g_bytes_new_take (bytes, size);
}

GBytes *
muster_tensor_proto_write (MusterTensor *tensor)
{
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  put_proto (&rope, tensor);
  return muster_rope_flatten (&rope);
}
