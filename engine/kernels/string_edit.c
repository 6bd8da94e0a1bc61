// SPDX-License-Identifier: Apache-2.0
/* Strings changed one by one: case, ends, parts, length, base64. */
#include "engine/kernels/broadcast.h"
#include "engine/kernels/strings.h"

#include <string.h>

gboolean
muster_strings_begin (MusterStrings *self, int n_dims, const gint64 *dims, GError **error)
{
  if (!muster_result_begin (&self->result, MUSTER_STRING, n_dims, dims, error))
    return FALSE;
  self->chunk = g_string_chunk_new (256);
  return TRUE;
}

gboolean
muster_strings_begin_like (MusterStrings *self, const MusterTensor *like, GError **error)
{
  return muster_strings_begin (self, muster_tensor_n_dims (like), muster_tensor_dims (like), error);
}

void
muster_strings_put (MusterStrings *self, gint64 i, const char *data, gsize size)
{
  self->result.strings[i].data =
      size > 0 ? g_string_chunk_insert_len (self->chunk, data, (gssize)size) : NULL;
  self->result.strings[i].size = size;
}

void
muster_strings_end (MusterStrings *self, MusterKernel *k, int i)
{
  muster_result_end (&self->result, k, i);
  muster_strings_clear (self);
}

void
muster_strings_clear (MusterStrings *self)
{
  muster_result_clear (&self->result);
  g_clear_pointer (&self->chunk, g_string_chunk_free);
}

char *
muster_string_text (MusterString string)
{
  return g_utf8_make_valid (string.data != NULL ? string.data : "", (gssize)string.size);
}

char *
muster_kernel_attr_text (MusterKernel *k, const char *name)
{
  char *text = muster_node_string (muster_kernel_node (k), name);

  return text != NULL ? text : g_strdup ("");
}

static gboolean
has_unit (MusterKernel *k, const char *attr, const char *unit)
{
  g_autofree char *text = muster_kernel_attr_text (k, attr);

  return g_ascii_strcasecmp (text, unit) == 0;
}

/* One string into another: appended to out. */
typedef void (*Edit) (MusterKernel *k, MusterString string, GString *out);

static gboolean
edit_all (MusterKernel *k, Edit edit, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0);
  g_auto (MusterStrings) out = {0};
  g_autoptr (GString) text = g_string_new (NULL);

  if (!muster_strings_begin_like (&out, x, error))
    return FALSE;
  for (gint64 i = 0; i < muster_tensor_n_elements (x); i++) {
    g_string_truncate (text, 0);
    edit (k, muster_tensor_string (x, i), text);
    muster_strings_put (&out, i, text->str, text->len);
  }
  muster_strings_end (&out, k, 0);
  return TRUE;
}

static void
lower_bytes (MusterKernel *k G_GNUC_UNUSED, MusterString string, GString *out)
{
  for (gsize i = 0; i < string.size; i++)
    g_string_append_c (out, g_ascii_tolower (string.data[i]));
}

static void
upper_bytes (MusterKernel *k G_GNUC_UNUSED, MusterString string, GString *out)
{
  for (gsize i = 0; i < string.size; i++)
    g_string_append_c (out, g_ascii_toupper (string.data[i]));
}

static void
lower_text (MusterKernel *k G_GNUC_UNUSED, MusterString string, GString *out)
{
  g_autofree char *valid = muster_string_text (string);
  g_autofree char *lower = g_utf8_strdown (valid, -1);
  g_string_append (out, lower);
}

static void
upper_text (MusterKernel *k G_GNUC_UNUSED, MusterString string, GString *out)
{
  g_autofree char *valid = muster_string_text (string);
  g_autofree char *upper = g_utf8_strup (valid, -1);
  g_string_append (out, upper);
}

static void
strip (MusterKernel *k G_GNUC_UNUSED, MusterString string, GString *out)
{
  gsize from = 0, to = string.size;

  while (from < to && (g_ascii_isspace (string.data[from]) || string.data[from] == '\v'))
    from++;
  while (to > from && (g_ascii_isspace (string.data[to - 1]) || string.data[to - 1] == '\v'))
    to--;
  g_string_append_len (out, string.data + from, (gssize)(to - from));
}

/* Web-safe; '=' at the end only where the op asks for it. */
static void
encode_base64 (MusterKernel *k, MusterString string, GString *out)
{
  g_autofree char *text = g_base64_encode ((const guchar *)string.data, string.size);
  gsize size = strlen (text);

  if (!muster_kernel_attr_bool (k, "pad", FALSE))
    while (size > 0 && text[size - 1] == '=')
      size--;
  for (gsize i = 0; i < size; i++)
    g_string_append_c (out, text[i] == '+' ? '-' : text[i] == '/' ? '_' : text[i]);
}

static gboolean
compute_lower (MusterKernel *k, GError **error)
{
  return edit_all (k, has_unit (k, "encoding", "utf-8") ? lower_text : lower_bytes, error);
}

static gboolean
compute_upper (MusterKernel *k, GError **error)
{
  return edit_all (k, has_unit (k, "encoding", "utf-8") ? upper_text : upper_bytes, error);
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
decode_base64 (MusterString string, GString *out)
{
  gsize size = string.size, given = size;
  gint state = 0;
  guint save = 0;

  while (size > 0 && given - size < 2 && string.data[size - 1] == '=')
    size--;
  if (size % 4 == 1 || (given != size && given % 4 != 0))
    return FALSE;
  g_autofree char *text = g_malloc (size + 4);
  for (gsize i = 0; i < size; i++) {
    char c = string.data[i];
    if (!g_ascii_isalnum (c) && c != '-' && c != '_')
      return FALSE;
    text[i] = c == '-' ? '+' : c == '_' ? '/' : c;
  }
  for (given = size; given % 4 != 0; given++)
    text[given] = '=';
  g_string_set_size (out, given);
  g_string_set_size (out, g_base64_decode_step (text, given, (guchar *)out->str, &state, &save));
  return TRUE;
}

static gboolean
compute_decode_base64 (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0);
  g_auto (MusterStrings) out = {0};
  g_autoptr (GString) bytes = g_string_new (NULL);

  if (!muster_strings_begin_like (&out, x, error))
    return FALSE;
  for (gint64 i = 0; i < muster_tensor_n_elements (x); i++) {
    g_string_truncate (bytes, 0);
    if (!decode_base64 (muster_tensor_string (x, i), bytes))
      return muster_invalid (error, "Invalid character found in base64.");
    muster_strings_put (&out, i, bytes->str, bytes->len);
  }
  muster_strings_end (&out, k, 0);
  return TRUE;
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

/* Where character n begins; the string's size for the one after the last. */
static gsize
byte_of (MusterString string, gint64 n)
{
  for (gsize i = 0; i < string.size; i++)
    if (begins_character (string.data[i]) && n-- == 0)
      return i;
  return string.size;
}

/* The part of a string from pos (negative: from the end), at most len long. */
static gboolean
cut (MusterString *string, gint64 pos, gint64 len, gboolean in_characters, gint64 at,
     GError **error)
{
  gint64 n = in_characters ? n_characters (*string) : (gint64)string->size;
  gint64 from = pos < 0 ? pos + n : pos;

  if (from < 0 || from > n) {
    g_autofree char *text = muster_string_text (*string);
    return muster_invalid (error,
                           "pos %" G_GINT64_FORMAT " out of range for string b'%s' at index "
                           "%" G_GINT64_FORMAT,
                           pos, text, at);
  }
  len = CLAMP (len, 0, n - from);
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
      !muster_strings_begin (&out, b.n_dims, b.dims, error))
    return FALSE;
  for (gint64 n = 0; n < out.result.n; n++) {
    MusterString string = muster_tensor_string (operands[0], place.from[0]);
    if (!cut (&string, muster_int_at (operands[1], place.from[1]),
              muster_int_at (lengths, place.from[1]), in_characters, n, error))
      return FALSE;
    muster_strings_put (&out, n, string.data, string.size);
    muster_broadcast_next (&b, 2, 0, &place);
  }
  muster_strings_end (&out, k, 0);
  return TRUE;
}

/* Which axes are joined; the first runs fastest. */
static gboolean
read_axes (MusterKernel *k, int n, int *axes, int *n_axes, GError **error)
{
  MusterTensor *given = muster_kernel_input (k, 1);
  gboolean seen[MUSTER_MAX_DIMS] = {FALSE};

  *n_axes = (int)MIN (muster_tensor_n_elements (given), MUSTER_MAX_DIMS);
  for (int i = 0; i < *n_axes; i++) {
    gint64 axis = muster_int_at (given, i);
    if (axis < -n || axis >= n) {
      g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_OUT_OF_RANGE,
                   "Invalid reduction dimension %" G_GINT64_FORMAT
                   " for input with %d dimension(s)",
                   axis, n);
      return FALSE;
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
    joined *= muster_tensor_dims (x)[axes[i]];
  }
  for (int d = 0; d < n; d++)
    if (!reduced[d] || keeps)
      dims[n_out++] = reduced[d] ? 1 : muster_tensor_dims (x)[d];
  if (!muster_strings_begin (&out, n_out, dims, error))
    return FALSE;
  for (gint64 i = 0; i < out.result.n; i++) {
    g_autoptr (GString) text = g_string_new (NULL);
    gint64 rest = i, base = 0;
    for (int d = n - 1; d >= 0; d--)
      if (!reduced[d]) {
        base += rest % muster_tensor_dims (x)[d] * steps[d];
        rest /= muster_tensor_dims (x)[d];
      }
    for (gint64 j = 0; j < joined; j++) {
      gint64 from = base, number = j;
      for (int a = 0; a < n_axes; a++) {
        from += number % muster_tensor_dims (x)[axes[a]] * steps[axes[a]];
        number /= muster_tensor_dims (x)[axes[a]];
      }
      MusterString string = muster_tensor_string (x, from);
      if (j > 0)
        g_string_append (text, separator);
      g_string_append_len (text, string.data != NULL ? string.data : "", (gssize)string.size);
    }
    muster_strings_put (&out, i, text->str, text->len);
  }
  muster_strings_end (&out, k, 0);
  return TRUE;
}

#define EDIT "input:string -> output:string"

const MusterOp muster_string_edit_ops[] = {
    {"StringLower", EDIT, "", compute_lower, 0},
    {"StringUpper", EDIT, "", compute_upper, 0},
    {"StringStrip", EDIT, "", compute_strip, 0},
    {"EncodeBase64", EDIT, "", compute_encode_base64, 0},
    {"DecodeBase64", EDIT, "", compute_decode_base64, 0},
    {"StringLength", "input:string -> output:int32", "", compute_length, 0},
    {"Substr", "input:string, pos:T, len:T -> output:string", "T:int32|int64", compute_substr, 0},
    {"ReduceJoin", "inputs:string, reduction_indices:int32 -> output:string", "",
     compute_reduce_join, 0},
    {NULL, NULL, NULL, NULL, 0},
};
