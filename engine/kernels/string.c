// SPDX-License-Identifier: Apache-2.0
/* The few string ops that savers and readiness need. */
#include "engine/kernels/dispatch.h"

#include <string.h>

/* An attribute's bytes as text; NULL if it isn't there. */
static char *
attr_text (MusterKernel *k, const char *name)
{
  return muster_node_string (muster_kernel_node (k), name);
}

/* Joins element by element; a scalar goes with every element of the others. */
static gboolean
compute_string_join (MusterKernel *k, GError **error)
{
  g_autofree char *separator = attr_text (k, "separator");
  MusterTensor *shape = NULL;
  g_auto (MusterResult) result = {0};
  g_autoptr (GStringChunk) chunk = NULL;

  for (int i = 0; i < muster_kernel_n_inputs (k); i++) {
    MusterTensor *x = muster_kernel_input (k, i);
    if (shape != NULL && muster_tensor_n_dims (x) > 0 && muster_tensor_n_dims (shape) > 0 &&
        !muster_same_shape (x, shape)) {
      g_autofree char *a = muster_shape_text (shape), *b = muster_shape_text (x);
      return muster_invalid (
          error, "Input shapes do not match: expected scalars or shape %s, but got %s", a, b);
    }
    if (shape == NULL || muster_tensor_n_dims (shape) == 0)
      shape = x;
  }
  if (shape == NULL || !muster_result_begin (&result, MUSTER_STRING, muster_tensor_n_dims (shape),
                                             muster_tensor_dims (shape), error))
    return shape != NULL ? FALSE : muster_invalid (error, "StringJoin has no inputs");
  chunk = g_string_chunk_new (256);
  for (gint64 i = 0; i < result.n; i++) {
    g_autoptr (GString) joined = g_string_new ("");
    for (int j = 0; j < muster_kernel_n_inputs (k); j++) {
      MusterTensor *x = muster_kernel_input (k, j);
      MusterString s = muster_tensor_string (x, muster_tensor_n_dims (x) == 0 ? 0 : i);
      if (j > 0 && separator != NULL)
        g_string_append (joined, separator);
      g_string_append_len (joined, s.data != NULL ? s.data : "", (gssize)s.size);
    }
    result.strings[i].data = g_string_chunk_insert_len (chunk, joined->str, (gssize)joined->len);
    result.strings[i].size = joined->len;
  }
  muster_result_end (&result, k, 0);
  return TRUE;
}

/* PCRE instead of RE2: for the patterns of a Saver ("^s3://.*") they are the same, and PCRE stops
 * at its own match limit, which counts as no match. */
static gboolean
match_all (MusterKernel *k, MusterTensor *x, const char *pattern, GError **error)
{
  g_autofree char *anchored = g_strdup_printf ("\\A(?:%s)\\z", pattern);
  g_autoptr (GError) own = NULL;
  g_autoptr (GRegex) regex = g_regex_new (anchored, G_REGEX_RAW | G_REGEX_DOLLAR_ENDONLY, 0, &own);
  MusterTensor *out;

  if (regex == NULL)
    return muster_invalid (error, "Invalid pattern: %s, error: %s", pattern, own->message);
  out = muster_kernel_output (k, 0, muster_tensor_n_dims (x), muster_tensor_dims (x), error);
  if (out == NULL)
    return FALSE;
  for (gint64 i = 0; i < muster_tensor_n_elements (x); i++) {
    MusterString s = muster_tensor_string (x, i);
    ((guint8 *)muster_tensor_data_mutable (out))[i] =
        g_regex_match_full (regex, s.data != NULL ? s.data : "", (gssize)s.size, 0, 0, NULL,
                            NULL) != 0;
  }
  return TRUE;
}

static gboolean
compute_static_regex_full_match (MusterKernel *k, GError **error)
{
  g_autofree char *pattern = attr_text (k, "pattern");

  return match_all (k, muster_kernel_input (k, 0), pattern != NULL ? pattern : "", error);
}

static gboolean
compute_regex_full_match (MusterKernel *k, GError **error)
{
  g_autofree char *pattern = NULL;
  MusterString s;

  if (!muster_check_scalar (k, 1, "Pattern", error))
    return FALSE;
  s = muster_tensor_string (muster_kernel_input (k, 1), 0);
  pattern = g_strndup (s.data != NULL ? s.data : "", s.size);
  return match_all (k, muster_kernel_input (k, 0), pattern, error);
}

const MusterOp muster_string_ops[] = {
    {"StringJoin", "inputs:N*string -> output:string", "", compute_string_join, 0},
    {"StaticRegexFullMatch", "input:string -> output:bool", "", compute_static_regex_full_match, 0},
    {"RegexFullMatch", "input:string, pattern:string -> output:bool", "", compute_regex_full_match,
     0},
    {NULL, NULL, NULL, NULL, 0},
};
