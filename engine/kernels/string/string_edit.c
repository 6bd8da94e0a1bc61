// SPDX-License-Identifier: Apache-2.0
/* Ops on single strings: case, stripping, substrings, length, base64. */
#include "engine/kernels/common/broadcast.h"
#include "engine/kernels/common/strings.h"
#include "engine/kernels/string/string_op_tables.h"

#include <string.h>

static gboolean
has_unit (MusterKernel *k, const char *attr, const char *unit)
{
  g_autofree char *text = muster_kernel_attr_text (k, attr);
  return g_ascii_strcasecmp (text, unit) == 0;
}

/* Appends the changed string to out. */
typedef void (*Edit) (MusterKernel *k, MusterString string, MusterText *out);

static gboolean
edit_all (MusterKernel *k, Edit edit, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0);
  g_auto (MusterStrings) out = {0};
  if (!muster_strings_begin_like (&out, k, x, error))
    return FALSE;
  for (gint64 i = 0; i < muster_tensor_n_elements (x) && !out.text.failed; i++) {
    edit (k, muster_tensor_string (x, i), &out.text);
    muster_strings_close (&out, i);
  }
  return muster_strings_end (&out, k, 0, error);
}

static void
lower_bytes (MusterKernel *k G_GNUC_UNUSED, MusterString string, MusterText *out)
{
  char *to = muster_text_extend (out, string.size);
  for (gsize i = 0; to != NULL && i < string.size; i++)
    to[i] = g_ascii_tolower (string.data[i]);
}

static void
upper_bytes (MusterKernel *k G_GNUC_UNUSED, MusterString string, MusterText *out)
{
  char *to = muster_text_extend (out, string.size);
  for (gsize i = 0; to != NULL && i < string.size; i++)
    to[i] = g_ascii_toupper (string.data[i]);
}

static void
lower_text (MusterKernel *k G_GNUC_UNUSED, MusterString string, MusterText *out)
{
  muster_text_append_valid (out, string, g_utf8_strdown);
}

static void
upper_text (MusterKernel *k G_GNUC_UNUSED, MusterString string, MusterText *out)
{
  muster_text_append_valid (out, string, g_utf8_strup);
}

static void
strip (MusterKernel *k G_GNUC_UNUSED, MusterString string, MusterText *out)
{
  gsize from = 0, to = string.size;
  while (from < to && (g_ascii_isspace (string.data[from]) || string.data[from] == '\v'))
    from++;
  while (to > from && (g_ascii_isspace (string.data[to - 1]) || string.data[to - 1] == '\v'))
    to--;
  muster_text_append (out, string.data + from, to - from);
}

/* Web-safe; padded with '=' only if the op requests it. */
static void
encode_base64 (MusterKernel *k, MusterString string, MusterText *out)
{
  const gsize size = (string.size + 2) / 3 * 4;
  char *to = muster_text_extend (out, size);
  gint state = 0, save = 0;
  if (to == NULL || size == 0)
    return;
  gsize written =
      g_base64_encode_step ((const guchar *)string.data, string.size, FALSE, to, &state, &save);
  written += g_base64_encode_close (FALSE, to + written, &state, &save);
  for (gsize i = 0; i < written; i++)
    to[i] = to[i] == '+' ? '-' : to[i] == '/' ? '_' : to[i];
  if (!muster_kernel_attr_bool (k, "pad", FALSE))
    while (out->size > 0 && out->data[out->size - 1] == '=')
      out->size--;
}

static gboolean
check_encoding (MusterKernel *k, GError **error)
{
  g_autofree char *encoding = muster_kernel_attr_text (k, "encoding");

  return encoding[0] == '\0' || g_str_equal (encoding, "utf-8") ||
         muster_invalid (error, "only utf-8 or '' (no encoding) is supported, received %s",
                         encoding);
}

static gboolean
compute_lower (MusterKernel *k, GError **error)
{
  return check_encoding (k, error) &&
         edit_all (k, has_unit (k, "encoding", "utf-8") ? lower_text : lower_bytes, error);
}

static gboolean
compute_upper (MusterKernel *k, GError **error)
{
  return check_encoding (k, error) &&
         edit_all (k, has_unit (k, "encoding", "utf-8") ? upper_text : upper_bytes, error);
}

static gboolean
compute_strip (MusterKernel *k, GError **error)
{
  return edit_all (k, strip, error);
}

static gboolean
compute_encode_base64 (MusterKernel *k, GError **error)
{
  return edit_all (k, encode_base64, error);
}

/* FALSE for what isn't web-safe base64. */
static gboolean
decode_base64 (MusterString string, MusterText *out)
{
  gsize size = string.size, given = size;
  gint state = 0;
  guint save = 0;
  while (size > 0 && given - size < 2 && string.data[size - 1] == '=')
    size--;
  if (size % 4 == 1 || (given != size && given % 4 != 0))
    return FALSE;
  const gsize begin = out->size, padded = (size + 3) / 4 * 4;
  char *text = muster_text_extend (out, padded);
  for (gsize i = 0; i < size; i++) {
    char c = string.data[i];
    if (!g_ascii_isalnum (c) && c != '-' && c != '_')
      return FALSE;
    if (text != NULL)
      text[i] = c == '-' ? '+' : c == '_' ? '/' : c;
  }
  if (text == NULL)
    return TRUE;
  memset (text + size, '=', padded - size);
  out->size = begin + g_base64_decode_step (text, padded, (guchar *)text, &state, &save);
  return TRUE;
}

static gboolean
compute_decode_base64 (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0);
  g_auto (MusterStrings) out = {0};
  if (!muster_strings_begin_like (&out, k, x, error))
    return FALSE;
  for (gint64 i = 0; i < muster_tensor_n_elements (x) && !out.text.failed; i++) {
    if (!decode_base64 (muster_tensor_string (x, i), &out.text))
      return muster_invalid (error, "Invalid character found in base64.");
    muster_strings_close (&out, i);
  }
  return muster_strings_end (&out, k, 0, error);
}

static gboolean
begins_character (char c)
{
  return ((guchar)c & 0xc0) != 0x80;
}

static gint64
n_characters (MusterString string)
{
  gint64 n = 0;
  for (gsize i = 0; i < string.size; i++)
    n += begins_character (string.data[i]);
  return n;
}

static gboolean
compute_length (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0);
  gboolean in_characters = has_unit (k, "unit", "UTF8_CHAR");
  MusterTensor *out =
      muster_kernel_output (k, 0, muster_tensor_n_dims (x), muster_tensor_dims (x), error);

  if (out == NULL)
    return FALSE;
  for (gint64 i = 0; i < muster_tensor_n_elements (x); i++) {
    MusterString string = muster_tensor_string (x, i);
    ((gint32 *)muster_tensor_data_mutable (out))[i] =
        (gint32)(in_characters ? n_characters (string) : (gint64)string.size);
  }
  return TRUE;
}

/* The offset of character n; the string's size for the one after the last. */
static gsize
byte_of (MusterString string, gint64 n)
{
  for (gsize i = 0; i < string.size; i++)
    if (begins_character (string.data[i]) && n-- == 0)
      return i;
  return string.size;
}

/* Reduces string to its part from pos (negative: from the end), at most len long; a negative length
 * is, as in TensorFlow, all of the bytes, none of the characters, or no length from the end. */
static gboolean
cut (MusterString *string, gint64 pos, gint64 len, gboolean in_characters, gint64 at,
     GError **error)
{
  gint64 n = in_characters ? n_characters (*string) : (gint64)string->size;
  gint64 from = pos < 0 ? pos + n : pos;
  if (from < 0 || from > n || (in_characters && pos < 0 && len < 0)) {
    g_autofree char *text = muster_string_text (*string);
    return muster_invalid (error,
                           "pos %" G_GINT64_FORMAT " out of range for string b'%s' at index "
                           "%" G_GINT64_FORMAT,
                           pos, text, at);
  }
  len = len < 0 && !in_characters ? n - from : CLAMP (len, 0, n - from);
  gsize begin = in_characters ? byte_of (*string, from) : (gsize)from;
  gsize end = in_characters ? byte_of (*string, from + len) : (gsize)(from + len);
  string->data += begin;
  string->size = end - begin;
  return TRUE;
}

static gboolean
compute_substr (MusterKernel *k, GError **error)
{
  MusterTensor *operands[] = {muster_kernel_input (k, 0), muster_kernel_input (k, 1)};
  MusterTensor *lengths = muster_kernel_input (k, 2);
  gboolean in_characters = has_unit (k, "unit", "UTF8_CHAR");
  MusterPlace place = {0};
  g_auto (MusterStrings) out = {0};
  MusterBroadcast b;
  if (!muster_same_shape (operands[1], lengths)) {
    g_autofree char *pos = muster_shape_text (operands[1]), *len = muster_shape_text (lengths);
    return muster_invalid (error, "pos and len should have the same shape, got: %s vs. %s", pos,
                           len);
  }
  if (!muster_broadcast_init (&b, operands, 2, error) ||
      !muster_strings_begin (&out, k, b.n_dims, b.dims, error))
    return FALSE;
  for (gint64 n = 0; n < out.result.n && !out.text.failed; n++) {
    MusterString string = muster_tensor_string (operands[0], place.from[0]);
    if (!cut (&string, muster_int_at (operands[1], place.from[1]),
              muster_int_at (lengths, place.from[1]), in_characters, n, error))
      return FALSE;
    muster_strings_put (&out, n, string.data, string.size);
    muster_broadcast_next (&b, 2, 0, &place);
  }
  return muster_strings_end (&out, k, 0, error);
}

/* Reads the axes to join; the first one varies fastest. */
static gboolean
read_axes (MusterKernel *k, int n, int *axes, int *n_axes, GError **error)
{
  MusterTensor *given = muster_kernel_input (k, 1);
  gboolean seen[MUSTER_MAX_DIMS] = {FALSE};
  *n_axes = (int)MIN (muster_tensor_n_elements (given), MUSTER_MAX_DIMS);
  for (int i = 0; i < *n_axes; i++) {
    gint64 axis = muster_int_at (given, i);
    if (axis < -n || axis >= n) {
      return muster_fail (error, MUSTER_ERROR_OUT_OF_RANGE,
                          "Invalid reduction dimension %" G_GINT64_FORMAT
                          " for input with %d dimension(s)",
                          axis, n);
    }
    axes[i] = (int)(axis < 0 ? axis + n : axis);
    if (seen[axes[i]])
      return muster_invalid (error, "Duplicate reduction dimension %" G_GINT64_FORMAT, axis);
    seen[axes[i]] = TRUE;
  }
  return TRUE;
}

static gboolean
compute_reduce_join (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0);
  int n = muster_tensor_n_dims (x), n_axes = 0, n_out = 0, axes[MUSTER_MAX_DIMS];
  gboolean keeps = muster_kernel_attr_bool (k, "keep_dims", FALSE);
  g_autofree char *separator = muster_kernel_attr_text (k, "separator");
  gint64 steps[MUSTER_MAX_DIMS], dims[MUSTER_MAX_DIMS], joined = 1;
  gboolean reduced[MUSTER_MAX_DIMS] = {FALSE};
  g_auto (MusterStrings) out = {0};

  if (!read_axes (k, n, axes, &n_axes, error))
    return FALSE;
  muster_dense_steps (n, muster_tensor_dims (x), steps);
  for (int i = 0; i < n_axes; i++) {
    reduced[axes[i]] = TRUE;
    joined = (gint64)((guint64)joined * (guint64)muster_tensor_dims (x)[axes[i]]);
  }
  for (int d = 0; d < n; d++)
    if (!reduced[d] || keeps)
      dims[n_out++] = reduced[d] ? 1 : muster_tensor_dims (x)[d];
  if (!muster_strings_begin (&out, k, n_out, dims, error))
    return FALSE;
  for (gint64 i = 0; i < out.result.n && !out.text.failed; i++) {
    gint64 rest = i, base = 0;
    for (int d = n - 1; d >= 0; d--)
      if (!reduced[d]) {
        base += rest % muster_tensor_dims (x)[d] * steps[d];
        rest /= muster_tensor_dims (x)[d];
      }
    for (gint64 j = 0; j < joined && !out.text.failed; j++) {
      gint64 from = base, number = j;
      for (int a = 0; a < n_axes; a++) {
        from += number % muster_tensor_dims (x)[axes[a]] * steps[axes[a]];
        number /= muster_tensor_dims (x)[axes[a]];
      }
      if (j > 0)
        muster_text_put (&out.text, separator);
      muster_text_append_string (&out.text, muster_tensor_string (x, from));
    }
    muster_strings_close (&out, i);
  }
  return muster_strings_end (&out, k, 0, error);
}

#define EDIT "input:string -> output:string"

const MusterOp muster_string_edit_ops[] = {
    {"StringLower", EDIT, "encoding", compute_lower, 0},
    {"StringUpper", EDIT, "encoding", compute_upper, 0},
    {"StringStrip", EDIT, "", compute_strip, 0},
    {"EncodeBase64", EDIT, "pad", compute_encode_base64, 0},
    {"DecodeBase64", EDIT, "", compute_decode_base64, 0},
    {"StringLength", "input:string -> output:int32", "unit", compute_length, 0},
    {"Substr", "input:string, pos:T, len:T -> output:string", "T:int32|int64 unit", compute_substr,
     0},
    {"ReduceJoin", "inputs:string, reduction_indices:int32 -> output:string", "keep_dims separator",
     compute_reduce_join, 0},
    {NULL, NULL, NULL, NULL, 0},
};
