// SPDX-License-Identifier: Apache-2.0
/* Parses lines of separated values (RFC 4180) to a tensor for each column. */
#include "engine/kernels/common/strings.h"
#include "engine/kernels/string/string_number.h"
#include "engine/kernels/string/string_op_tables.h"

#include <string.h>

/* The state of parsing a line. */
typedef struct {
  const char *text;
  gsize size, at;
  char delimiter;
  gboolean has_quotes;
  MusterText *fields; /* the fields that are kept, concatenated */
} Line;

static gboolean
read_bare (Line *line, GError **error)
{
  const gsize begin = line->at;
  for (; line->at < line->size && line->text[line->at] != line->delimiter; line->at++) {
    const char c = line->text[line->at];
    if ((line->has_quotes && c == '"') || c == '\n' || c == '\r')
      return muster_invalid (error, "Unquoted fields cannot have quotes/CRLFs inside");
  }
  muster_text_append (line->fields, line->text + begin, line->at - begin);
  line->at++;
  return TRUE;
}

static gboolean
read_quoted (Line *line, GError **error)
{
  const char *text = line->text;
  for (line->at++; line->at + 1 < line->size;) {
    const char c = text[line->at], next = text[line->at + 1];
    if (c == '"' && next == line->delimiter)
      break;
    if (c == '"' && next != '"')
      return muster_invalid (error, "Quote inside a string has to be escaped by another quote");
    muster_text_put_c (line->fields, c);
    line->at += c == '"' ? 2 : 1;
  }
  if (line->at >= line->size || text[line->at] != '"')
    return muster_invalid (error, "Quoted field has to end with quote followed by delim or end");
  line->at += 2;
  return TRUE;
}

/* The source of each output. */
typedef struct {
  gint64 column; /* index in the line, from 0 */
  gsize end;     /* of its field in the line's kept fields */
  MusterDType dtype;
  MusterTensor *fallback; /* (not owned) one value; none: the column is required */
  MusterResult numbers;
  MusterStrings texts;
} Output;

typedef struct {
  MusterKernel *k;
  Output *outputs; /* (owned) */
  int n;
  gboolean selects; /* TRUE: only some of the columns */
  MusterString na;
} Csv;

static gboolean
put_fallback (Csv *csv, int f, gint64 record, GError **error)
{
  Output *output = &csv->outputs[f];
  if (muster_tensor_n_elements (output->fallback) != 1)
    return muster_invalid (
        error, "Field %d is required but missing in record %" G_GINT64_FORMAT "!", f, record);
  if (output->dtype == MUSTER_STRING) {
    const MusterString text = muster_tensor_string (output->fallback, 0);
    muster_strings_put (&output->texts, record, text.data, text.size);
    return muster_text_check (&output->texts.text, error);
  }
  MusterResult *result = &output->numbers;
  memcpy (result->data + (gsize)record * result->size, muster_tensor_data (output->fallback),
          result->size);
  return TRUE;
}

static gboolean
put_field (Csv *csv, int f, gint64 record, MusterString field, GError **error)
{
  Output *output = &csv->outputs[f];
  if (field.size == 0 ||
      (field.size == csv->na.size && memcmp (field.data, csv->na.data, field.size) == 0))
    return put_fallback (csv, f, record, error);
  if (output->dtype == MUSTER_STRING) {
    muster_strings_put (&output->texts, record, field.data, field.size);
    return muster_text_check (&output->texts.text, error);
  }
  g_autofree char *text = muster_kernel_copy_string (csv->k, field, error);
  MusterResult *result = &output->numbers;
  if (text == NULL)
    return FALSE;
  if (strlen (text) == field.size &&
      muster_parse_number (g_strstrip (text), output->dtype,
                           result->data + (gsize)record * result->size)) {
    muster_budget_release (muster_kernel_budget (csv->k), field.size + 1);
    return TRUE;
  }
  g_autofree char *valid = muster_string_text (field);
  return muster_invalid (error, "Field %d in record %" G_GINT64_FORMAT " is not a valid %s: %s", f,
                         record, muster_dtype_name (output->dtype), valid);
}

/* TRUE if column is the source of output n. Without a selection, all columns are used. */
static gboolean
is_wanted (const Csv *csv, int n, gint64 column)
{
  return !csv->selects || (n < csv->n && csv->outputs[n].column == column);
}

/* Keeps the text since begin as a field if an output needs it. n and the result are the number of
 * fields kept. */
static int
keep_field (Csv *csv, Line *line, gsize begin, gint64 column, int n)
{
  const gboolean wanted = is_wanted (csv, n, column);
  if (wanted && n < csv->n)
    csv->outputs[n].end = line->fields->size;
  else
    line->fields->size = MIN (line->fields->size, begin);
  return wanted && n < G_MAXINT ? n + 1 : n;
}

/* Returns the number of fields kept of a line, -1 with an error. */
static int
read_line (Csv *csv, Line *line, GError **error)
{
  int n = 0;
  gint64 column = 0;
  for (; line->at < line->size; column++) {
    const gsize begin = line->fields->size;
    while (line->at < line->size && (line->text[line->at] == '\r' || line->text[line->at] == '\n'))
      line->at++;
    if (line->at >= line->size)
      break;
    if (!(line->has_quotes && line->text[line->at] == '"' ? read_quoted (line, error)
                                                          : read_bare (line, error)))
      return -1;
    n = keep_field (csv, line, begin, column, n);
    if (csv->selects && n == csv->n)
      return n;
  }
  if (line->size > 0 && line->text[line->size - 1] == line->delimiter)
    n = keep_field (csv, line, line->fields->size, column, n);
  return n;
}

static gboolean
read_lines (Csv *csv, const MusterTensor *records, char delimiter, GError **error)
{
  g_auto (MusterText) fields = MUSTER_TEXT_INIT (csv->k);
  const gboolean has_quotes = muster_kernel_attr_bool (csv->k, "use_quote_delim", TRUE);
  for (gint64 i = 0; i < muster_tensor_n_elements (records); i++) {
    const MusterString text = muster_tensor_string (records, i);
    Line line = {.text = text.data,
                 .size = text.size,
                 .delimiter = delimiter,
                 .has_quotes = has_quotes,
                 .fields = &fields};
    fields.size = 0;
    const int n = read_line (csv, &line, error);
    if (n < 0 || !muster_text_check (&fields, error))
      return FALSE;
    if (n != csv->n)
      return muster_invalid (error, "Expect %d fields but have %d in record %" G_GINT64_FORMAT,
                             csv->n, n, i);
    for (int f = 0; f < n; f++) {
      const gsize begin = f > 0 ? csv->outputs[f - 1].end : 0;
      const MusterString field = {.data = fields.data + begin, .size = csv->outputs[f].end - begin};
      if (!put_field (csv, f, i, field, error))
        return FALSE;
    }
  }
  return TRUE;
}

static gboolean
begin_output (Csv *csv, int f, const MusterTensor *records, GError **error)
{
  Output *output = &csv->outputs[f];
  MusterTensor *fallback = output->fallback = muster_kernel_input (csv->k, f + 1);
  output->dtype = muster_kernel_output_dtype (csv->k, f);
  if (output->dtype != MUSTER_FLOAT && output->dtype != MUSTER_DOUBLE &&
      output->dtype != MUSTER_INT32 && output->dtype != MUSTER_INT64 &&
      output->dtype != MUSTER_STRING)
    return muster_invalid (error, "csv: data type %s not supported in field %d",
                           muster_dtype_name (output->dtype), f);
  if (muster_tensor_n_dims (fallback) > 1)
    return muster_invalid (error, "Each record default should be at most rank 1");
  if (muster_tensor_n_elements (fallback) > 1)
    return muster_invalid (error,
                           "There should only be 1 default per field but field %d has "
                           "%" G_GINT64_FORMAT,
                           f, muster_tensor_n_elements (fallback));
  return output->dtype == MUSTER_STRING
             ? muster_strings_begin_like (&output->texts, csv->k, records, error)
             : muster_result_begin (&output->numbers, csv->k, output->dtype,
                                    muster_tensor_n_dims (records), muster_tensor_dims (records),
                                    error);
}

static gboolean
select_columns (Csv *csv, GError **error)
{
  const Tensorflow__AttrValue *attr = muster_kernel_attr (csv->k, "select_cols");
  const gsize n =
      attr != NULL && attr->value_case == TENSORFLOW__ATTR_VALUE__VALUE_LIST && attr->list != NULL
          ? attr->list->n_i
          : 0;
  csv->selects = n > 0;
  if (n != 0 && n != (gsize)csv->n)
    return muster_invalid (error, "select_cols should match output size");
  for (gsize i = 0; i < n; i++) {
    csv->outputs[i].column = attr->list->i[i];
    if (i > 0 && attr->list->i[i] <= attr->list->i[i - 1])
      return muster_invalid (error, "select_cols should be strictly increasing indices");
    if (attr->list->i[i] < 0)
      return muster_invalid (error, "select_cols should be non-negative indices");
  }
  return TRUE;
}

static gboolean
decode (Csv *csv, GError **error)
{
  const MusterTensor *records = muster_kernel_input (csv->k, 0);
  g_autofree char *delimiter = muster_kernel_attr_text (csv->k, "field_delim");
  g_autofree char *na = muster_kernel_attr_text (csv->k, "na_value");
  const char by = muster_kernel_attr (csv->k, "field_delim") != NULL ? delimiter[0] : ',';
  csv->na = (MusterString){.data = na, .size = strlen (na)};
  if (!select_columns (csv, error))
    return FALSE;
  if (by == '\0' || strlen (delimiter) > 1)
    return muster_invalid (error, "field_delim should be only 1 char");
  for (int f = 0; f < csv->n; f++)
    if (!begin_output (csv, f, records, error))
      return FALSE;
  if (!read_lines (csv, records, by, error))
    return FALSE;
  for (int f = 0; f < csv->n; f++) {
    Output *output = &csv->outputs[f];
    if (!(output->dtype == MUSTER_STRING ? muster_strings_end (&output->texts, csv->k, f, error)
                                         : muster_result_end (&output->numbers, csv->k, f, error)))
      return FALSE;
  }
  return TRUE;
}

static gboolean
compute_decode_csv (MusterKernel *k, GError **error)
{
  const int n = muster_kernel_n_outputs (k);
  g_autofree Output *outputs = muster_kernel_alloc0 (k, (gint64)n + 1, sizeof *outputs, error);
  if (outputs == NULL)
    return FALSE;
  Csv csv = {.k = k, .outputs = outputs, .n = n};
  const gboolean done = decode (&csv, error);
  for (int f = 0; f < n; f++) {
    muster_result_clear (&outputs[f].numbers);
    muster_strings_clear (&outputs[f].texts);
  }
  return done;
}

const MusterOp muster_csv_ops[] = {
    {"DecodeCSV", "records:string, record_defaults:*OUT_TYPE -> output:*OUT_TYPE",
     "field_delim use_quote_delim na_value select_cols", compute_decode_csv, 0},
    {NULL, NULL, NULL, NULL, 0},
};
