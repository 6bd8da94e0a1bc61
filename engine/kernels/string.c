// SPDX-License-Identifier: Apache-2.0
/* Strings joined, matched and replaced. */
#include "engine/kernels/strings.h"

#include <string.h>

/* Joins element by element; a scalar goes with every element of the others. */
static gboolean
compute_string_join (MusterKernel *k, GError **error)
{
  g_autofree char *separator = muster_kernel_attr_text (k, "separator");
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
      if (j > 0)
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
  g_autofree char *pattern = muster_kernel_attr_text (k, "pattern");

  return match_all (k, muster_kernel_input (k, 0), pattern, error);
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

/* The first match of each string, or all of them, becomes the rewrite, in which \\1 is what the
 * first group matched. */
static gboolean
replace (MusterKernel *k, const char *pattern, const char *rewrite, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0);
  gboolean all = muster_kernel_attr_bool (k, "replace_global", TRUE);
  g_autoptr (GError) own = NULL;
  g_autoptr (GRegex) regex = g_regex_new (pattern, G_REGEX_RAW | G_REGEX_DOLLAR_ENDONLY, 0, &own);
  g_auto (MusterStrings) out = {0};

  if (regex == NULL)
    return muster_invalid (error, "Invalid pattern: %s, error: %s", pattern, own->message);
  if (!muster_strings_begin_like (&out, x, error))
    return FALSE;
  for (gint64 i = 0; i < muster_tensor_n_elements (x); i++) {
    g_autoptr (GMatchInfo) match = NULL;
    MusterString s = muster_tensor_string (x, i);
    const char *data = s.data != NULL ? s.data : "";
    g_autoptr (GString) text = g_string_new (NULL);
    gint from, to, done = 0;
    g_regex_match_full (regex, data, (gssize)s.size, 0, 0, &match, NULL);
    while (g_match_info_matches (match) && g_match_info_fetch_pos (match, 0, &from, &to)) {
      g_autofree char *put = g_match_info_expand_references (match, rewrite, &own);
      if (put == NULL)
        return muster_invalid (error, "Invalid rewrite: %s, error: %s", rewrite, own->message);
      g_string_append_len (text, data + done, from - done);
      g_string_append (text, put);
      done = to;
      if (!all || !g_match_info_next (match, NULL))
        break;
    }
    g_string_append_len (text, data + done, (gssize)s.size - done);
    muster_strings_put (&out, i, text->str, text->len);
  }
  muster_strings_end (&out, k, 0);
  return TRUE;
}

static gboolean
compute_static_regex_replace (MusterKernel *k, GError **error)
{
  g_autofree char *pattern = muster_kernel_attr_text (k, "pattern");
  g_autofree char *rewrite = muster_kernel_attr_text (k, "rewrite");

  return replace (k, pattern, rewrite, error);
}

static gboolean
compute_regex_replace (MusterKernel *k, GError **error)
{
  g_autofree char *pattern = NULL, *rewrite = NULL;
  MusterString a, b;

  if (!muster_check_scalar (k, 1, "Pattern", error) ||
      !muster_check_scalar (k, 2, "Rewrite", error))
    return FALSE;
  a = muster_tensor_string (muster_kernel_input (k, 1), 0);
  b = muster_tensor_string (muster_kernel_input (k, 2), 0);
  pattern = g_strndup (a.data != NULL ? a.data : "", a.size);
  rewrite = g_strndup (b.data != NULL ? b.data : "", b.size);
  return replace (k, pattern, rewrite, error);
}

const MusterOp muster_string_ops[] = {
    {"StringJoin", "inputs:N*string -> output:string", "", compute_string_join, 0},
    {"StaticRegexFullMatch", "input:string -> output:bool", "", compute_static_regex_full_match, 0},
    {"RegexFullMatch", "input:string, pattern:string -> output:bool", "", compute_regex_full_match,
     0},
    {"StaticRegexReplace", "input:string -> output:string", "", compute_static_regex_replace, 0},
    {"RegexReplace", "input:string, pattern:string, rewrite:string -> output:string", "",
     compute_regex_replace, 0},
    {NULL, NULL, NULL, NULL, 0},
};
