// SPDX-License-Identifier: Apache-2.0
/* Strings joined, matched and replaced. */
#include "engine/kernels/common/strings.h"
#include "engine/kernels/string/string_op_tables.h"

#include <string.h>

/* Joins element-wise; scalars are broadcast. */
static gboolean
compute_string_join (MusterKernel *k, GError **error)
{
  g_autofree char *separator = muster_kernel_attr_text (k, "separator");
  MusterTensor *shape = NULL;
  g_auto (MusterStrings) out = {0};

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
  if (shape == NULL ? !muster_strings_begin (&out, k, 0, NULL, error)
                    : !muster_strings_begin_like (&out, k, shape, error))
    return FALSE;
  for (gint64 i = 0; i < out.result.n && !out.text.failed; i++) {
    for (int j = 0; j < muster_kernel_n_inputs (k); j++) {
      MusterTensor *x = muster_kernel_input (k, j);
      if (j > 0)
        muster_text_put (&out.text, separator);
      muster_text_append_string (&out.text,
                                 muster_tensor_string (x, muster_tensor_n_dims (x) == 0 ? 0 : i));
    }
    muster_strings_close (&out, i);
  }
  return muster_strings_end (&out, k, 0, error);
}

/* GRegex counts a subject's bytes as int, and copies a pattern more than once. */
#define MAX_SUBJECT ((gsize)G_MAXINT32)
#define MAX_PATTERN ((gsize)1 << 20)
/* The memory that PCRE may allocate for backtracking, in KiB; its default is 20 GB. */
#define MAX_HEAP "(*LIMIT_HEAP=65536)"

/* PCRE instead of RE2: they agree on the patterns of a Saver ("^s3://.*"). If PCRE reaches its
 * match limit, the result is no match. */
static GRegex *
new_regex (const char *pattern, gboolean whole, GError **error)
{
  g_autoptr (GError) own = NULL;
  g_autofree char *limited = NULL;
  GRegex *regex;

  if (strlen (pattern) > MAX_PATTERN) {
    muster_invalid (error, "Invalid pattern: it has more than %" G_GSIZE_FORMAT " bytes",
                    MAX_PATTERN);
    return NULL;
  }
  limited = g_strdup_printf (whole ? MAX_HEAP "\\A(?:%s)\\z" : MAX_HEAP "%s", pattern);
  regex = g_regex_new (limited, G_REGEX_RAW | G_REGEX_DOLLAR_ENDONLY, 0, &own);
  if (regex == NULL)
    muster_invalid (error, "Invalid pattern: %.1024s, error: %.2048s", pattern, own->message);
  return regex;
}

/* Converts a string for GRegex; returns FALSE if it is too long. */
static gboolean
get_subject (MusterTensor *x, gint64 i, MusterString *subject, GError **error)
{
  *subject = muster_tensor_string (x, i);
  if (subject->data == NULL)
    subject->data = "";
  return subject->size <= MAX_SUBJECT ||
         muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                      "A string of %" G_GSIZE_FORMAT
                      " bytes is too long for a regular expression: at most %" G_GSIZE_FORMAT
                      " can be matched",
                      subject->size, MAX_SUBJECT);
}

static gboolean
match_all (MusterKernel *k, MusterTensor *x, const char *pattern, GError **error)
{
  g_autoptr (GRegex) regex = new_regex (pattern, TRUE, error);
  MusterTensor *out = regex == NULL ? NULL
                                    : muster_kernel_output (k, 0, muster_tensor_n_dims (x),
                                                            muster_tensor_dims (x), error);
  if (out == NULL)
    return FALSE;
  for (gint64 i = 0; i < muster_tensor_n_elements (x); i++) {
    MusterString s;
    if (!get_subject (x, i, &s, error))
      return FALSE;
    ((guint8 *)muster_tensor_data_mutable (out))[i] =
        g_regex_match_full (regex, s.data, (gssize)s.size, 0, 0, NULL, NULL) != 0;
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
  pattern = muster_kernel_copy_string (k, s, error);
  return pattern != NULL && match_all (k, muster_kernel_input (k, 0), pattern, error);
}

/* The highest group in a rewrite, or -1 with an error. As in RE2, \0 to \9 stand for the groups'
 * matches and \\ for one '\'. */
static gint
highest_group (const char *rewrite, GError **error)
{
  gint highest = 0;
  for (const char *at = strchr (rewrite, '\\'); at != NULL; at = strchr (at + 2, '\\')) {
    if (at[1] != '\\' && !g_ascii_isdigit (at[1])) {
      (void)muster_invalid (error,
                            "Invalid rewrite: %.1024s, error: only \\0 to \\9 and \\\\ may "
                            "follow a backslash",
                            rewrite);
      return -1;
    }
    if (at[1] != '\\')
      highest = MAX (highest, at[1] - '0');
  }
  return highest;
}

static void
append_rewrite (MusterText *out, const GMatchInfo *match, MusterString s, const char *rewrite)
{
  for (const char *at = rewrite; *at != '\0' && !out->failed; at++) {
    gint from, to;
    if (*at != '\\')
      muster_text_put_c (out, *at);
    else if (*++at == '\\')
      muster_text_put_c (out, '\\');
    else if (g_match_info_fetch_pos (match, *at - '0', &from, &to) && from >= 0)
      muster_text_append (out, s.data + from, (gsize)(to - from));
  }
}

/* The first match of a string, or all of them, becomes the rewrite. */
static void
replace_one (MusterText *out, const GRegex *regex, MusterString s, const char *rewrite,
             gboolean all)
{
  g_autoptr (GMatchInfo) match = NULL;
  gint from, to, done = 0;
  g_regex_match_full (regex, s.data, (gssize)s.size, 0, 0, &match, NULL);
  while (!out->failed && g_match_info_matches (match) &&
         g_match_info_fetch_pos (match, 0, &from, &to)) {
    muster_text_append (out, s.data + done, (gsize)(from - done));
    append_rewrite (out, match, s, rewrite);
    done = to;
    if (!all || !g_match_info_next (match, NULL))
      break;
  }
  muster_text_append (out, s.data + done, s.size - (gsize)done);
}

static gboolean
replace (MusterKernel *k, const char *pattern, const char *rewrite, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0);
  gboolean all = muster_kernel_attr_bool (k, "replace_global", TRUE);
  g_autoptr (GRegex) regex = new_regex (pattern, FALSE, error);
  g_auto (MusterStrings) out = {0};
  gint highest = regex != NULL ? highest_group (rewrite, error) : -1;
  if (highest < 0 || !muster_strings_begin_like (&out, k, x, error))
    return FALSE;
  /* As in TensorFlow, a rewrite with an unknown group changes nothing. */
  const gboolean changes = highest <= g_regex_get_capture_count (regex);
  for (gint64 i = 0; i < muster_tensor_n_elements (x) && !out.text.failed; i++) {
    MusterString s;
    if (!get_subject (x, i, &s, error))
      return FALSE;
    if (changes)
      replace_one (&out.text, regex, s, rewrite, all);
    else
      muster_text_append_string (&out.text, s);
    muster_strings_close (&out, i);
  }
  return muster_strings_end (&out, k, 0, error);
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
  if ((pattern = muster_kernel_copy_string (k, a, error)) == NULL ||
      (rewrite = muster_kernel_copy_string (k, b, error)) == NULL)
    return FALSE;
  return replace (k, pattern, rewrite, error);
}

const MusterOp muster_string_ops[] = {
    {"StringJoin", "inputs:N*string -> output:string", "separator N>=0", compute_string_join, 0},
    {"StaticRegexFullMatch", "input:string -> output:bool", "pattern",
     compute_static_regex_full_match, 0},
    {"RegexFullMatch", "input:string, pattern:string -> output:bool", "", compute_regex_full_match,
     0},
    {"StaticRegexReplace", "input:string -> output:string", "pattern rewrite replace_global",
     compute_static_regex_replace, 0},
    {"RegexReplace", "input:string, pattern:string, rewrite:string -> output:string",
     "replace_global", compute_regex_replace, 0},
    {NULL, NULL, NULL, NULL, 0},
};
