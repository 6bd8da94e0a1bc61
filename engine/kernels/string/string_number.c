// SPDX-License-Identifier: Apache-2.0
/* Numbers to strings and back, as text and as bytes. */
#include "engine/kernels/string/string_number.h"
#include "engine/kernels/string/string_op_tables.h"

#include "engine/kernels/common/strings.h"
#include "graph/tensor_proto_private.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static gboolean
is_floating (MusterDType dtype)
{
  return muster_wide (dtype) == MUSTER_F32 || muster_wide (dtype) == MUSTER_F64;
}

static gboolean
is_complex (MusterDType dtype)
{
  return dtype == MUSTER_COMPLEX64 || dtype == MUSTER_COMPLEX128;
}

/* AsString's format: the middle of the printf directive ("08.3") and its letter for floats. */
typedef struct {
  char *middle; /* (owned) */
  char letter;
} Style;

static void
style_clear (Style *self)
{
  g_clear_pointer (&self->middle, g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Style, style_clear)

static gboolean
read_style (MusterKernel *k, MusterDType dtype, Style *style, GError **error)
{
  gint64 precision = muster_kernel_attr_int (k, "precision", -1);
  gint64 width = muster_kernel_attr_int (k, "width", -1);
  gboolean scientific = muster_kernel_attr_bool (k, "scientific", FALSE);
  gboolean shortest = muster_kernel_attr_bool (k, "shortest", FALSE);
  g_autofree char *fill = muster_kernel_attr_text (k, "fill");
  g_autoptr (GString) middle = g_string_new (NULL);

  if (!is_floating (dtype) && !is_complex (dtype) && dtype != MUSTER_STRING) {
    if (scientific || shortest)
      return muster_invalid (error, "scientific and shortest format not supported for datatype %s",
                             muster_dtype_name (dtype));
    if (precision >= 0)
      return muster_invalid (error, "precision not supported for datatype %s",
                             muster_dtype_name (dtype));
  }
  if (strlen (fill) > 1)
    return muster_invalid (error, "Fill string must be one or fewer characters");
  if (fill[0] != '\0' && strchr (" +-0#", fill[0]) == NULL)
    return muster_invalid (error, "Fill argument not supported: \"%s\"", fill);
  if (scientific && shortest)
    return muster_invalid (error, "Cannot select both scientific and shortest notation");
  if (width > 10000 || precision > 10000)
    return muster_invalid (error, "A width or precision of more than 10000 isn't supported");
  if (width > -1)
    g_string_append_printf (middle, "%s%d", fill, (int)width);
  if (precision > -1)
    g_string_append_printf (middle, ".%d", (int)precision);
  style->middle = g_string_free (g_steal_pointer (&middle), FALSE);
  style->letter = shortest ? 'g' : scientific ? 'e' : 'f';
  return TRUE;
}

/* The maximum size of a printed number: a double's digits, plus the maximum padding. */
#define MAX_NUMBER 20512

/* A client can't choose the directive: read_style () accepts only a short list of characters. */
static void
append_double (MusterText *text, const Style *style, double value)
{
  g_autofree char *format = g_strdup_printf ("%%%s%c", style->middle, style->letter);
  char buffer[MAX_NUMBER];

  muster_text_put (text, g_ascii_formatd (buffer, sizeof buffer, format, value));
}

static void
append_integer (MusterText *text, const Style *style, gint64 value, gboolean is_signed)
{
  g_autofree char *format =
      g_strdup_printf ("%%%s%s", style->middle, is_signed ? G_GINT64_FORMAT : G_GUINT64_FORMAT);
  char buffer[MAX_NUMBER];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  g_snprintf (buffer, sizeof buffer, format, value);
#pragma GCC diagnostic pop
  muster_text_put (text, buffer);
}

static void
append_string (MusterText *text, const Style *style, MusterString string)
{
  char *end;
  gint64 width = g_ascii_strtoll (style->middle, &end, 10);
  if (width != 0 && *end == '.') /* without a width, TensorFlow ignores the precision */
    string.size = MIN (string.size, (gsize)g_ascii_strtoll (end + 1, NULL, 10));
  const gsize padding = (gsize)MAX (ABS (width) - (gint64)string.size, 0);
  if (width > 0)
    muster_text_put_n (text, ' ', padding);
  muster_text_append_string (text, string);
  if (width < 0)
    muster_text_put_n (text, ' ', padding);
}

static void
append_complex (MusterText *text, const Style *style, MusterDType dtype, const guint8 *at)
{
  const gboolean is_single = dtype == MUSTER_COMPLEX64;
  muster_text_put_c (text, '(');
  append_double (text, style, is_single ? ((const float *)at)[0] : ((const double *)at)[0]);
  muster_text_put_c (text, ',');
  append_double (text, style, is_single ? ((const float *)at)[1] : ((const double *)at)[1]);
  muster_text_put_c (text, ')');
}

static void
append_number (MusterText *text, const Style *style, MusterDType dtype, const guint8 *at)
{
  gint64 wide = 0;
  muster_widen (dtype, at, 1, &wide);
  if (dtype == MUSTER_DOUBLE)
    append_double (text, style, *(const double *)at);
  else if (dtype == MUSTER_FLOAT)
    append_double (text, style, *(const float *)at);
  else if (dtype == MUSTER_HALF)
    append_double (text, style, muster_half_to_float (*(const guint16 *)at));
  else if (dtype == MUSTER_BFLOAT16)
    append_double (text, style, muster_bfloat16_to_float (*(const guint16 *)at));
  else if (dtype == MUSTER_BOOL)
    muster_text_put (text, wide ? "true" : "false");
  else
    append_integer (text, style, dtype == MUSTER_INT32 ? *(const gint32 *)at : wide,
                    dtype != MUSTER_UINT64);
}

static gboolean
compute_as_string (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0);
  MusterDType dtype = muster_tensor_dtype (x);
  const guint8 *data = muster_tensor_data (x);
  g_auto (MusterStrings) out = {0};
  g_auto (Style) style = {0};
  if (!read_style (k, dtype, &style, error) || !muster_strings_begin_like (&out, k, x, error))
    return FALSE;
  for (gint64 i = 0; i < muster_tensor_n_elements (x) && !out.text.failed; i++) {
    if (dtype == MUSTER_STRING)
      append_string (&out.text, &style, muster_tensor_string (x, i));
    else if (is_complex (dtype))
      append_complex (&out.text, &style, dtype, data + (gsize)i * muster_dtype_size (dtype));
    else
      append_number (&out.text, &style, dtype, data + (gsize)i * muster_dtype_size (dtype));
    muster_strings_close (&out, i);
  }
  return muster_strings_end (&out, k, 0, error);
}

static gboolean
parse_floating (const char *text, MusterDType dtype, void *to)
{
  char *end;
  double value = g_ascii_strtod (text, &end);
  if (end == text || *end != '\0')
    return FALSE;
  if (dtype == MUSTER_DOUBLE)
    *(double *)to = value;
  else
    *(float *)to = (float)value;
  return TRUE;
}

static gboolean
parse_unsigned (const char *text, MusterDType dtype, void *to)
{
  char *end;
  guint64 value;
  errno = 0;
  value = g_ascii_strtoull (text, &end, 10);
  if (end == text || *end != '\0' || errno != 0 || text[0] == '-' ||
      (dtype == MUSTER_UINT32 && value > G_MAXUINT32))
    return FALSE;
  if (dtype == MUSTER_UINT64)
    *(guint64 *)to = value;
  else
    *(guint32 *)to = (guint32)value;
  return TRUE;
}

static gboolean
parse_signed (const char *text, MusterDType dtype, void *to)
{
  char *end;
  gint64 value;
  errno = 0;
  value = g_ascii_strtoll (text, &end, 10);
  if (end == text || *end != '\0' || errno != 0 ||
      (dtype == MUSTER_INT32 && (value < G_MININT32 || value > G_MAXINT32)))
    return FALSE;
  if (dtype == MUSTER_INT64)
    *(gint64 *)to = value;
  else
    *(gint32 *)to = (gint32)value;
  return TRUE;
}

gboolean
muster_parse_number (const char *text, MusterDType dtype, void *to)
{
  if (is_floating (dtype))
    return parse_floating (text, dtype, to);
  if (dtype == MUSTER_UINT64 || dtype == MUSTER_UINT32)
    return parse_unsigned (text, dtype, to);
  return parse_signed (text, dtype, to);
}

static gboolean
compute_to_number (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0);
  MusterTensor *out =
      muster_kernel_output (k, 0, muster_tensor_n_dims (x), muster_tensor_dims (x), error);
  gsize size;

  if (out == NULL)
    return FALSE;
  size = muster_dtype_size (muster_tensor_dtype (out));
  for (gint64 i = 0; i < muster_tensor_n_elements (x); i++) {
    MusterString string = muster_tensor_string (x, i);
    g_autofree char *text = muster_kernel_copy_string (k, string, error);
    if (text == NULL)
      return FALSE;
    if (strlen (text) != string.size ||
        !muster_parse_number (g_strstrip (text), muster_tensor_dtype (out),
                              (guint8 *)muster_tensor_data_mutable (out) + (gsize)i * size)) {
      g_autofree char *valid = muster_string_text (string);
      return muster_invalid (error, "StringToNumberOp could not correctly convert string: %s",
                             valid);
    }
    muster_budget_release (muster_kernel_budget (k), string.size + 1);
  }
  return TRUE;
}

static void
swap_bytes (guint8 *data, gsize n, gsize size)
{
  for (gsize i = 0; i < n; i += size)
    for (gsize j = 0; j < size / 2; j++) {
      guint8 kept = data[i + j];
      data[i + j] = data[i + size - 1 - j];
      data[i + size - 1 - j] = kept;
    }
}

/* Reinterprets strings of the same size as numbers. */
static gboolean
compute_decode_raw (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0), *out;
  MusterDType dtype = muster_kernel_output_dtype (k, 0);
  int n = muster_tensor_n_dims (x);
  gsize each = muster_tensor_n_elements (x) > 0 ? muster_tensor_string (x, 0).size : 0;
  gsize size = muster_dtype_size (dtype), swapped = size;
  gint64 dims[MUSTER_MAX_DIMS + 1];
  if (n + 1 > MUSTER_MAX_DIMS)
    return muster_invalid (error, "DecodeRaw: too many dimensions");
  if (size == 0)
    return muster_invalid (error, "DecodeRaw can't give strings");
  for (gint64 i = 1; i < muster_tensor_n_elements (x); i++)
    if (muster_tensor_string (x, i).size != each)
      return muster_invalid (error,
                             "DecodeRaw requires input strings to all be the same size, but "
                             "element %" G_GINT64_FORMAT " has size %" G_GSIZE_FORMAT
                             " != %" G_GSIZE_FORMAT,
                             i, muster_tensor_string (x, i).size, each);
  if (each % size != 0)
    return muster_invalid (error,
                           "Input to DecodeRaw has length %" G_GSIZE_FORMAT
                           " that is not a multiple of %" G_GSIZE_FORMAT ", the size of %s",
                           each, size, muster_dtype_name (dtype));
  for (int d = 0; d < n; d++)
    dims[d] = muster_tensor_dims (x)[d];
  dims[n] = (gint64)(each / size);
  out = muster_kernel_output (k, 0, n + 1, dims, error);
  if (out == NULL)
    return FALSE;
  for (gint64 i = 0; each > 0 && i < muster_tensor_n_elements (x); i++)
    memcpy ((guint8 *)muster_tensor_data_mutable (out) + (gsize)i * each,
            muster_tensor_string (x, i).data, each);
  if (is_complex (dtype))
    swapped /= 2;
  if (!muster_kernel_attr_bool (k, "little_endian", TRUE))
    swap_bytes (muster_tensor_data_mutable (out), muster_tensor_n_bytes (out), swapped);
  muster_make_bools (out);
  return TRUE;
}

static gboolean
compute_serialize (MusterKernel *k, GError **error)
{
  g_autoptr (GBytes) bytes =
      muster_tensor_proto_try_write (muster_kernel_input (k, 0), muster_kernel_budget (k), error);
  MusterString string;

  if (bytes == NULL)
    return FALSE;
  string.data = g_bytes_get_data (bytes, &string.size);
  return muster_kernel_output_strings (k, 0, 0, NULL, &string, error);
}

/* Limits the expansion of a TensorProto with fewer values than elements to the kernel's budget. */
static MusterTensor *
parse (MusterKernel *k, MusterString string, GError **error)
{
  MusterBudget *budget = muster_kernel_budget (k);
  gsize expansion = MIN (budget->limit - budget->taken, MUSTER_MAX_EXPANSION);
  g_autoptr (GError) own = NULL;
  g_autoptr (MusterTensor) parsed =
      muster_tensor_proto_read_within (string.data, string.size, NULL, &expansion, &own);

  if (muster_error_is (own, MUSTER_ERROR_RESOURCE_EXHAUSTED)) {
    g_propagate_error (error, g_steal_pointer (&own));
    return NULL;
  }
  if (parsed == NULL) {
    muster_invalid (error, "Could not parse `serialized` as TensorProto: %s", own->message);
    return NULL;
  }
  return muster_budget_take_owned (budget, muster_tensor_n_stored (parsed), error)
             ? g_steal_pointer (&parsed)
             : NULL;
}

static gboolean
compute_parse (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0);
  MusterDType wanted = muster_kernel_output_dtype (k, 0);
  g_autoptr (MusterTensor) parsed = NULL;
  if (!muster_check_scalar (k, 0, "Expected `serialized` to be a scalar, got shape:", error) ||
      (parsed = parse (k, muster_tensor_string (x, 0), error)) == NULL)
    return FALSE;
  if (muster_tensor_dtype (parsed) != wanted)
    return muster_invalid (error, "Type mismatch between parsed tensor (%s) and dtype (%s)",
                           muster_dtype_name (muster_tensor_dtype (parsed)),
                           muster_dtype_name (wanted));
  muster_kernel_set_output (k, 0, g_steal_pointer (&parsed));
  return TRUE;
}

const MusterOp muster_string_number_ops[] = {
    {"AsString", "input:T -> output:string", "T:any precision scientific shortest width fill",
     compute_as_string, 0},
    {"StringToNumber", "string_tensor:string -> output:out_type",
     "out_type:float|double|int32|int64|uint32|uint64", compute_to_number, 0},
    {"DecodeRaw", "bytes:string -> output:out_type", "out_type:any little_endian",
     compute_decode_raw, 0},
    {"SerializeTensor", "tensor:T -> serialized:string", "T:any", compute_serialize, 0},
    {"ParseTensor", "serialized:string -> output:out_type", "out_type:any", compute_parse, 0},
    {NULL, NULL, NULL, NULL, 0},
};
