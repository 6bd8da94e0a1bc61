// SPDX-License-Identifier: Apache-2.0
/* Splits strings into a sparse matrix with a row for each string. */
#include "engine/kernels/common/strings.h"
#include "engine/kernels/string/string_op_tables.h"

#include <string.h>

/* The parts of all strings so far. */
typedef struct {
  MusterText parts; /* of MusterString, borrowed bytes */
  gint64 *counts;   /* (owned) by string */
  gint64 n_strings;
} Parts;

static gint64
n_parts (const Parts *self)
{
  return (gint64)(self->parts.size / sizeof (MusterString));
}

static gboolean
parts_init (Parts *self, MusterKernel *k, gint64 n_strings, GError **error)
{
  self->parts = (MusterText)MUSTER_TEXT_INIT (k);
  self->n_strings = n_strings;
  self->counts = muster_kernel_alloc (k, n_strings, sizeof (gint64), error);
  return self->counts != NULL;
}

static void
parts_clear (Parts *self)
{
  muster_text_clear (&self->parts);
  g_free (self->counts);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Parts, parts_clear)

static void
add_part (Parts *self, const char *from, const char *to)
{
  const MusterString part = {from, (gsize)(to - from)};
  muster_text_append (&self->parts, &part, sizeof part);
}

static gboolean
set_parts (MusterKernel *k, Parts *parts, GError **error)
{
  gint64 n = n_parts (parts), n_strings = parts->n_strings, most = 0, at = 0;
  MusterTensor *indices, *shape = NULL;
  gint64 *to;
  if (!muster_text_check (&parts->parts, error))
    return FALSE;
  indices = muster_kernel_output (k, 0, 2, (gint64[]){n, 2}, error);
  if (indices != NULL)
    shape = muster_kernel_output (k, 2, 1, (gint64[]){2}, error);
  if (shape == NULL)
    return FALSE;
  to = muster_tensor_data_mutable (indices);
  for (gint64 i = 0; i < n_strings; i++) {
    most = MAX (most, parts->counts[i]);
    for (gint64 j = 0; j < parts->counts[i]; j++, at++) {
      to[2 * at] = i;
      to[2 * at + 1] = j;
    }
  }
  ((gint64 *)muster_tensor_data_mutable (shape))[0] = n_strings;
  ((gint64 *)muster_tensor_data_mutable (shape))[1] = most;
  return muster_kernel_output_strings (k, 1, 1, &n, (const MusterString *)parts->parts.data, error);
}

/* Splits at each byte that is in the delimiter; without a delimiter, into single bytes. */
static void
split_at_bytes (Parts *parts, MusterString string, MusterString delimiter, gboolean skips_empty)
{
  const char *at = string.data, *end = at + string.size, *from = at;
  if (delimiter.size == 0) {
    for (; at < end; at++)
      add_part (parts, at, at + 1);
    return;
  }
  if (string.size == 0)
    return;
  for (;; at++) {
    if (at < end && memchr (delimiter.data, *at, delimiter.size) == NULL)
      continue;
    if (at > from || !skips_empty)
      add_part (parts, from, at);
    if (at == end)
      return;
    from = at + 1;
  }
}

static const char *
skip_blanks (const char *at, const char *end)
{
  while (at < end && (g_ascii_isspace (*at) || *at == '\v'))
    at++;
  return at;
}

/* Splits at runs of blanks, and drops those at the ends. After `most` parts (0: no limit) the last
 * part is the rest, which may be empty. */
static void
split_at_blanks (Parts *parts, MusterString string, gint64 most)
{
  const char *end = string.data + string.size, *at = skip_blanks (string.data, end);
  for (gint64 n = 1; at < end; n++) {
    const char *from = at;
    while (at < end && skip_blanks (at, end) == at)
      at++;
    add_part (parts, from, at);
    at = skip_blanks (at, end);
    if (n == most) {
      add_part (parts, at, end);
      return;
    }
  }
}

static void
split_at_text (Parts *parts, MusterString string, MusterString separator, gint64 most)
{
  const char *at = string.data, *end = at + string.size;
  for (gint64 n = 0; most <= 0 || n < most; n++) {
    const char *found =
        at == end ? NULL : memmem (at, (gsize)(end - at), separator.data, separator.size);
    if (found == NULL)
      break;
    add_part (parts, at, found);
    at = found + separator.size;
  }
  add_part (parts, at, end);
}

static gboolean
check_vector (MusterTensor *x, GError **error)
{
  g_autofree char *shape = NULL;

  if (muster_tensor_n_dims (x) == 1)
    return TRUE;
  shape = muster_shape_text (x);
  return muster_invalid (error, "input must be a vector, got shape: %s", shape);
}

static MusterString
string_at (MusterTensor *x, gint64 i)
{
  MusterString string = muster_tensor_string (x, i);
  if (string.data == NULL)
    string.data = "";
  return string;
}

static gboolean
compute_split (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0), *delimiter = muster_kernel_input (k, 1);
  gboolean skips_empty = muster_kernel_attr_bool (k, "skip_empty", TRUE);
  g_auto (Parts) parts = {0};
  if (!check_vector (x, error))
    return FALSE;
  if (muster_tensor_n_dims (delimiter) != 0) {
    g_autofree char *shape = muster_shape_text (delimiter);
    return muster_invalid (error, "delimiter must be a scalar, got shape: %s", shape);
  }
  if (!parts_init (&parts, k, muster_tensor_n_elements (x), error))
    return FALSE;
  for (gint64 i = 0; i < parts.n_strings && !parts.parts.failed; i++) {
    const gint64 before = n_parts (&parts);
    split_at_bytes (&parts, string_at (x, i), string_at (delimiter, 0), skips_empty);
    parts.counts[i] = n_parts (&parts) - before;
  }
  return set_parts (k, &parts, error);
}

static gboolean
compute_split_v2 (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0), *separator = muster_kernel_input (k, 1);
  gint64 most = muster_kernel_attr_int (k, "maxsplit", -1);
  g_auto (Parts) parts = {0};
  if (!check_vector (x, error))
    return FALSE;
  if (muster_tensor_n_dims (separator) != 0) {
    g_autofree char *shape = muster_shape_text (separator);
    return muster_invalid (error, "sep must be a scalar, got shape: %s", shape);
  }
  if (!parts_init (&parts, k, muster_tensor_n_elements (x), error))
    return FALSE;
  for (gint64 i = 0; i < parts.n_strings && !parts.parts.failed; i++) {
    const gint64 before = n_parts (&parts);
    if (most == 0)
      add_part (&parts, string_at (x, i).data, string_at (x, i).data + string_at (x, i).size);
    else if (string_at (separator, 0).size == 0)
      split_at_blanks (&parts, string_at (x, i), most);
    else
      split_at_text (&parts, string_at (x, i), string_at (separator, 0), most);
    parts.counts[i] = n_parts (&parts) - before;
  }
  return set_parts (k, &parts, error);
}

#define OUT " -> indices:int64, values:string, shape:int64"

const MusterOp muster_string_split_ops[] = {
    {"StringSplit", "input:string, delimiter:string" OUT, "skip_empty", compute_split, 0},
    {"StringSplitV2", "input:string, sep:string" OUT, "maxsplit", compute_split_v2, 0},
    {NULL, NULL, NULL, NULL, 0},
};
