// SPDX-License-Identifier: Apache-2.0
/* Tensors as text: in an assertion's error, in a string, and on the server's output. */
#include "engine/kernels/common/strings.h"
#include "engine/kernels/io/io_op_tables.h"

#include "base/clock.h"

#include <math.h>
#include <string.h>

/* With the given number of digits, or as many as are needed to read the value back. */
static void
append_digits (MusterText *text, double value, gboolean is_single)
{
  char buffer[G_ASCII_DTOSTR_BUF_SIZE];
  g_ascii_formatd (buffer, sizeof buffer, is_single ? "%.6g" : "%.15g", value);
  if (!isnan (value) && (is_single ? (float)g_ascii_strtod (buffer, NULL) != (float)value
                                   : g_ascii_strtod (buffer, NULL) != value))
    g_ascii_formatd (buffer, sizeof buffer, is_single ? "%.9g" : "%.17g", value);
  muster_text_put (text, isnan (value) ? "nan" : buffer);
}

static gboolean
append_short (MusterText *text, const MusterTensor *x, gint64 i)
{
  const void *data = muster_tensor_data (x);
  switch (muster_tensor_dtype (x)) {
  case MUSTER_FLOAT:
    append_digits (text, ((const float *)data)[i], TRUE);
    return TRUE;
  case MUSTER_DOUBLE:
    append_digits (text, ((const double *)data)[i], FALSE);
    return TRUE;
  case MUSTER_HALF:
    append_digits (text, muster_half_to_float (((const guint16 *)data)[i]), TRUE);
    return TRUE;
  case MUSTER_BFLOAT16:
    append_digits (text, muster_bfloat16_to_float (((const guint16 *)data)[i]), TRUE);
    return TRUE;
  case MUSTER_BOOL:
    muster_text_put_c (text, ((const guint8 *)data)[i] ? '1' : '0');
    return TRUE;
  default:
    return FALSE;
  }
}

static void
append_element (MusterText *text, const MusterTensor *x, gint64 i, gboolean ends)
{
  if (append_short (text, x, i))
    return;
  if (muster_tensor_dtype (x) != MUSTER_STRING) {
    g_autoptr (GString) number = g_string_new (NULL);
    muster_tensor_append_element (number, x, i, G_MAXSIZE);
    muster_text_append (text, number->str, number->len);
    return;
  }
  muster_text_put (text, ends ? "\"" : "");
  muster_text_append_valid (text, muster_tensor_string (x, i), NULL);
  muster_text_put (text, ends ? "\"" : "");
}

/* Appends one dimension, at most limit elements in all. */
static void
append_first (MusterText *text, const MusterTensor *x, int dim, gint64 limit, gint64 *at)
{
  gint64 n = muster_tensor_dims (x)[dim];
  if (*at >= limit)
    return;
  for (gint64 i = 0; i < n && !text->failed; i++) {
    const gboolean is_open = *at < limit;
    if (dim == muster_tensor_n_dims (x) - 1) {
      if (!is_open) {
        muster_text_put (text, dim > 0 ? "..." : "");
        return;
      }
      muster_text_put (text, i > 0 ? " " : "");
      append_element (text, x, (*at)++, FALSE);
      continue;
    }
    muster_text_put (text, is_open ? "[" : "");
    append_first (text, x, dim + 1, limit, at);
    muster_text_put (text, is_open ? "]" : "");
  }
}

/* Appends the separator of two elements: a blank in the last dimension, newlines in the others. */
static void
append_space (MusterText *text, const MusterTensor *x, int dim)
{
  int n = muster_tensor_n_dims (x);
  if (dim == n - 1) {
    muster_text_put_c (text, ' ');
    return;
  }
  for (int i = 0; i < n - dim - 1; i++)
    muster_text_put_c (text, '\n');
  for (int i = 0; i <= dim; i++)
    muster_text_put_c (text, ' ');
}

static void
append_ends (MusterText *text, const MusterTensor *x, int dim, gint64 limit, gint64 at)
{
  if (dim == muster_tensor_n_dims (x)) {
    append_element (text, x, at, TRUE);
    return;
  }
  const gint64 *dims = muster_tensor_dims (x);
  gint64 n = dims[dim], each = muster_dims_product (dims, dim + 1, muster_tensor_n_dims (x));
  muster_text_put_c (text, '[');
  for (gint64 i = 0; i < MIN (limit, n) && !text->failed; i++) {
    if (i > 0)
      append_space (text, x, dim);
    append_ends (text, x, dim + 1, limit, at + i * each);
  }
  if (n > 2 * limit) {
    append_space (text, x, dim);
    muster_text_put (text, "...");
  }
  for (gint64 i = MAX (limit, n - limit); i < n && !text->failed; i++) {
    append_space (text, x, dim);
    append_ends (text, x, dim + 1, limit, at + i * each);
  }
  muster_text_put_c (text, ']');
}

static void
print_values (MusterText *text, const MusterTensor *x, gint64 limit, gboolean ends)
{
  gint64 n = muster_tensor_n_elements (x), at = 0;
  if (limit < 0 || limit > n)
    limit = n;
  if (ends) {
    append_ends (text, x, 0, limit, 0);
    return;
  }
  if (muster_tensor_n_dims (x) == 0)
    for (; at < limit && !text->failed; at++) {
      muster_text_put (text, at > 0 ? " " : "");
      append_element (text, x, at, FALSE);
    }
  else
    append_first (text, x, 0, limit, &at);
  muster_text_put (text, n > limit ? "..." : "");
}

/* Longer errors are truncated, as they are sent in a header. */
#define MAX_ASSERTION 4096

static gboolean
compute_assert (MusterKernel *k, GError **error)
{
  gint64 limit = muster_kernel_attr_int (k, "summarize", 3);
  MusterTensor *condition = muster_kernel_input (k, 0);
  g_auto (MusterBudget) budget = {.limit = MAX_ASSERTION};
  g_auto (MusterText) text = {.budget = &budget};
  if (!muster_check_scalar (k, 0, "In[0] should be a scalar: condition", error))
    return FALSE;
  if (*(const guint8 *)muster_tensor_data (condition) != 0)
    return TRUE;
  muster_text_put (&text, "assertion failed:");
  for (int i = 1; i < muster_kernel_n_inputs (k); i++) {
    muster_text_put (&text, " [");
    print_values (&text, muster_kernel_input (k, i), limit, FALSE);
    muster_text_put_c (&text, ']');
  }
  return muster_invalid (error, "%.*s%s", (int)text.size, text.data, text.failed ? "…" : "");
}

/* The number of times a Print has printed. */
typedef struct {
  MusterKernelMemo memo;
  gint64 n;
} Printed;

static gboolean
may_print (MusterKernel *k, gint64 most)
{
  MusterKernelMemo *memo = muster_kernel_take_memo (k);
  Printed *printed = (Printed *)memo;
  gboolean may;
  if (printed == NULL) {
    printed = g_new0 (Printed, 1);
    printed->memo.free = g_free;
  }
  may = most < 0 || printed->n < most;
  printed->n++;
  muster_kernel_keep_memo (k, &printed->memo);
  return may;
}

/* The number of copies that g_print () and g_printerr () make of a text, at most. */
#define N_PRINT_COPIES 3

/* Terminates the text as a C string that may be printed. */
static gboolean
end_print (MusterText *text, GError **error)
{
  muster_text_put_c (text, '\0');
  return muster_text_check (text, error) &&
         muster_budget_take (text->budget, N_PRINT_COPIES * text->size, error);
}

static gboolean
compute_print (MusterKernel *k, GError **error)
{
  gint64 limit = muster_kernel_attr_int (k, "summarize", 3);
  g_autofree char *message = muster_kernel_attr_text (k, "message");
  g_auto (MusterText) text = MUSTER_TEXT_INIT (k);

  muster_kernel_set_output (k, 0, muster_tensor_ref (muster_kernel_input (k, 0)));
  if (!may_print (k, muster_kernel_attr_int (k, "first_n", -1)))
    return TRUE;
  muster_text_put (&text, message);
  for (int i = 1; i < muster_kernel_n_inputs (k); i++) {
    muster_text_put_c (&text, '[');
    print_values (&text, muster_kernel_input (k, i), limit, FALSE);
    muster_text_put_c (&text, ']');
  }
  muster_text_put_c (&text, '\n');
  if (!end_print (&text, error))
    return FALSE;
  g_printerr ("%s", text.data);
  return TRUE;
}

/* To standard output or standard error only: a client may not write files. */
static gboolean
compute_print_v2 (MusterKernel *k, GError **error)
{
  MusterTensor *x = muster_kernel_input (k, 0);
  g_autofree char *stream = muster_kernel_attr_text (k, "output_stream");
  const Tensorflow__AttrValue *end = muster_kernel_attr (k, "end");
  g_autofree char *last = end != NULL ? muster_kernel_attr_text (k, "end") : g_strdup ("\n");
  g_auto (MusterText) text = MUSTER_TEXT_INIT (k);

  if (muster_tensor_n_dims (x) != 0) {
    g_autofree char *shape = muster_shape_text (x);
    return muster_invalid (error, "Input is expected to be scalar, but got %s", shape);
  }
  muster_text_append_valid (&text, muster_tensor_string (x, 0), NULL);
  muster_text_put (&text, last);
  if (!end_print (&text, error))
    return FALSE;
  if (g_str_equal (stream, "stdout")) {
    g_print ("%s", text.data);
    return TRUE;
  }
  if (stream[0] == '\0' || g_str_equal (stream, "stderr") || g_str_has_prefix (stream, "log(")) {
    g_printerr ("%s", text.data);
    return TRUE;
  }
  g_autofree char *valid = g_utf8_make_valid (stream, -1);
  return muster_invalid (error,
                         "Unknown output stream: %s. muster prints to stdout, stderr and "
                         "log(…), which is stderr",
                         valid);
}

/* Counts the placeholders in a template. */
static int
n_places (const char *template, const char *place)
{
  int n = 0;
  for (const char *at = strstr (template, place); at != NULL; at = strstr (at, place)) {
    at += strlen (place);
    n++;
  }
  return n;
}

static gboolean
compute_format (MusterKernel *k, GError **error)
{
  g_autofree char *template = muster_node_string (muster_kernel_node (k), "template");
  g_autofree char *place = muster_node_string (muster_kernel_node (k), "placeholder");
  const char *at = template != NULL ? template : "%s", *mark = place != NULL ? place : "%s";
  gint64 limit = muster_kernel_attr_int (k, "summarize", 3);
  int n = muster_kernel_n_inputs (k);
  g_auto (MusterText) text = MUSTER_TEXT_INIT (k);

  if (mark[0] == '\0' || n_places (at, mark) != n)
    return muster_invalid (error,
                           "num placeholders in template and num inputs must match: %d vs. %d",
                           mark[0] == '\0' ? 0 : n_places (at, mark), n);
  for (int i = 0; i < n; i++) {
    const char *next = strstr (at, mark);
    muster_text_append (&text, at, (gsize)(next - at));
    print_values (&text, muster_kernel_input (k, i), limit, TRUE);
    at = next + strlen (mark);
  }
  muster_text_put (&text, at);
  return muster_text_end (&text, k, 0, error);
}

static gboolean
compute_timestamp (MusterKernel *k, GError **error)
{
  MusterTensor *out = muster_kernel_output (k, 0, 0, NULL, error);
  if (out == NULL)
    return FALSE;
  *(double *)muster_tensor_data_mutable (out) =
      (double)muster_clock_wall_us (muster_system_clock ()) / 1e6;
  return TRUE;
}

#define R MUSTER_OP_READER

const MusterOp muster_print_ops[] = {
    {"Assert", "condition:bool, data:*T ->", "summarize", compute_assert, R},
    {"Print", "input:T, data:*U -> output:T", "T:any U>=0 message first_n summarize", compute_print,
     R},
    {"PrintV2", "input:string ->", "output_stream end", compute_print_v2, R},
    {"StringFormat", "inputs:*T -> output:string", "T>=0 template placeholder summarize",
     compute_format, 0},
    {"Timestamp", " -> ts:double", "", compute_timestamp, R},
    {NULL, NULL, NULL, NULL, 0},
};
