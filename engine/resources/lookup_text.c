// SPDX-License-Identifier: Apache-2.0
#include "engine/resources/lookup_text.h"

#include "base/error.h"
#include "graph/tensor_private.h"

#include <string.h>

#define CHUNK (256 * 1024)

typedef struct {
  const MusterLookupText *text;
  MusterDType key_dtype, value_dtype;
  MusterStorage *storage;
  MusterStorageInput *input; /* (owned) */
  MusterBudget *budget;      /* (not owned) (nullable) */
  GCancellable *cancellable; /* (nullable) */
  guint8 *chunk;             /* (owned) */
  gsize at, end;             /* the unread part of chunk */
  guint64 offset;            /* of the bytes after chunk */
  GString *line;             /* (owned) without its line end */
  gint64 n_lines;            /* number of lines read */
  MusterTensor *key, *value; /* (owned) (nullable) of line */
  gboolean is_ahead;         /* line was parsed already */
} Reader;

/* Opens the file, with TensorFlow's error messages if it has any. */
static gboolean
open_text (Reader *self, GError **error)
{
  g_autoptr (GError) own = NULL;
  guint64 size;
  self->input = muster_storage_open (self->storage, self->text->filename, &size, &own);
  if (self->input != NULL)
    return TRUE;
  if (g_error_matches (own, G_FILE_ERROR, G_FILE_ERROR_NOENT))
    muster_fail (error, MUSTER_ERROR_NOT_FOUND, "%s; No such file or directory",
                 self->text->filename);
  else if (g_error_matches (own, G_FILE_ERROR, G_FILE_ERROR_ISDIR))
    muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION, "%s; Is a directory",
                 self->text->filename);
  else
    g_propagate_error (error, g_steal_pointer (&own));
  return FALSE;
}

/* TRUE if there are bytes in chunk. */
static gboolean
fill_chunk (Reader *self, GError **error)
{
  if (self->at < self->end)
    return TRUE;
  if (self->cancellable != NULL && g_cancellable_set_error_if_cancelled (self->cancellable, error))
    return FALSE;
  const gssize n =
      muster_storage_read_at (self->storage, self->input, self->offset, self->chunk, CHUNK, error);
  if (n <= 0)
    return FALSE;
  self->at = 0;
  self->end = (gsize)n;
  self->offset += (guint64)n;
  return TRUE;
}

/* The next line; FALSE at the end or with an error. */
static gboolean
read_line (Reader *self, GError **error)
{
  g_autoptr (GError) own = NULL;
  gboolean has_some = FALSE, is_whole = FALSE;
  g_string_truncate (self->line, 0);
  while (!is_whole && fill_chunk (self, &own)) {
    const guint8 *from = self->chunk + self->at;
    const guint8 *end = memchr (from, '\n', self->end - self->at);
    const gsize n = end != NULL ? (gsize)(end - from) : self->end - self->at;
    if (self->line->len + n > MUSTER_LOOKUP_MAX_LINE)
      return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                          "Invalid content in %s: line %" G_GINT64_FORMAT " has more than %d bytes",
                          self->text->filename, self->n_lines, MUSTER_LOOKUP_MAX_LINE);
    g_string_append_len (self->line, (const char *)from, (gssize)n);
    is_whole = end != NULL;
    has_some = TRUE;
    self->at += n + (is_whole ? 1 : 0);
  }
  if (own != NULL) {
    g_propagate_error (error, g_steal_pointer (&own));
    return FALSE;
  }
  if (self->line->len > 0 && self->line->str[self->line->len - 1] == '\r')
    g_string_truncate (self->line, self->line->len - 1);
  return has_some && (is_whole || self->line->len > 0);
}

/* A column of the line, or the whole line. */
static MusterString
field_of (const Reader *self, gint64 index)
{
  const char *at = self->line->str, *end = at + self->line->len;
  if (index == MUSTER_LOOKUP_WHOLE_LINE)
    return (MusterString){at, self->line->len};
  for (const char *next; index > 0; index--, at = next + 1)
    next = memchr (at, self->text->delimiter, (gsize)(end - at));
  const char *next = memchr (at, self->text->delimiter, (gsize)(end - at));
  return (MusterString){at, (gsize)((next != NULL ? next : end) - at)};
}

static gboolean
check_columns (const Reader *self, GError **error)
{
  const gint64 wanted = MAX (self->text->key_index, self->text->value_index) + 1;
  gint64 n = 1;
  for (gsize i = 0; wanted > 1 && i < self->line->len; i++)
    n += self->line->str[i] == self->text->delimiter;
  if (n >= wanted)
    return TRUE;
  g_autofree char *line = g_utf8_make_valid (self->line->str, (gssize)MIN (self->line->len, 256));
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "Invalid number of columns in %s line %" G_GINT64_FORMAT
                      " (%s) : expected at least %" G_GINT64_FORMAT " got %" G_GINT64_FORMAT,
                      self->text->filename, self->n_lines, line, wanted, n);
}

/* Parses an integer, which blanks may surround. */
static gboolean
parse_int (const char *text, gint64 *value)
{
  char *end;
  while (g_ascii_isspace (*text))
    text++;
  if (!g_ascii_isdigit (text[text[0] == '-' || text[0] == '+']))
    return FALSE;
  errno = 0;
  *value = g_ascii_strtoll (text, &end, 10);
  while (g_ascii_isspace (*end))
    end++;
  return errno == 0 && *end == '\0';
}

static gboolean
parse_double (const char *text, double *value)
{
  char *end;
  *value = g_ascii_strtod (text, &end);
  if (end == text)
    return FALSE;
  while (g_ascii_isspace (*end))
    end++;
  return *end == '\0';
}

/* NULL if the text isn't a number of that dtype. */
static MusterTensor *
parse_number (const Reader *self, MusterDType dtype, const char *text)
{
  gint64 whole;
  double number;
  switch (dtype) {
  case MUSTER_INT32:
    if (!parse_int (text, &whole) || whole < G_MININT32 || whole > G_MAXINT32)
      return NULL;
    return muster_tensor_new_int32 ((gint32)((guint32)whole + (guint32)self->text->offset));
  case MUSTER_INT64:
    return parse_int (text, &whole) ? muster_tensor_new_int64 (whole) : NULL;
  case MUSTER_FLOAT:
    return parse_double (text, &number) ? muster_tensor_new_float ((float)number) : NULL;
  default:
    if (!parse_double (text, &number))
      return NULL;
    return muster_tensor_new_from_data (MUSTER_DOUBLE, 0, NULL, &number, sizeof number, NULL);
  }
}

static MusterTensor *
take_field (const Reader *self, gint64 index, MusterDType dtype, GError **error)
{
  if (index == MUSTER_LOOKUP_LINE_NUMBER)
    return muster_tensor_new_int64 ((gint64)((guint64)self->n_lines + (guint64)self->text->offset));
  const MusterString field = field_of (self, index);
  if (dtype == MUSTER_STRING)
    return muster_tensor_try_new_strings (NULL, 0, NULL, &field, error);
  if (dtype == MUSTER_BOOL) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "Data type %s not supported.",
                 muster_dtype_name (dtype));
    return NULL;
  }
  g_autofree char *text = g_strndup (field.data, field.size);
  MusterTensor *number = parse_number (self, dtype, text);
  if (number == NULL) {
    g_autofree char *shown = g_utf8_make_valid (text, (gssize)MIN (strlen (text), 256));
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "Field %s in line %" G_GINT64_FORMAT " is not a valid %s.", shown, self->n_lines,
                 muster_dtype_name (dtype));
  }
  return number;
}

/* Called at the end of the file: fails if there should be more lines. */
static gboolean
end_lines (const Reader *self, GError **error)
{
  if (self->text->vocab_size >= 0 && self->n_lines < self->text->vocab_size)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "Invalid vocab_size in %s: expected %" G_GINT64_FORMAT
                        " but got %" G_GINT64_FORMAT,
                        self->text->filename, self->text->vocab_size, self->n_lines);
  return FALSE;
}

static void
drop_line (Reader *self)
{
  g_clear_pointer (&self->key, muster_tensor_unref);
  g_clear_pointer (&self->value, muster_tensor_unref);
}

/* Reads and parses the next line; FALSE at the end or with an error. */
static gboolean
next_line (Reader *self, GError **error)
{
  g_autoptr (GError) own = NULL;
  drop_line (self);
  if (self->text->vocab_size >= 0 && self->n_lines >= self->text->vocab_size)
    return FALSE;
  if (!read_line (self, &own)) {
    if (own == NULL)
      return end_lines (self, error);
    g_propagate_error (error, g_steal_pointer (&own));
    return FALSE;
  }
  if (self->line->len == 0)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "Invalid content in %s: empty line found at position %" G_GUINT64_FORMAT
                        ".",
                        self->text->filename, self->offset - (self->end - self->at));
  if (!check_columns (self, error))
    return FALSE;
  self->key = take_field (self, self->text->key_index, self->key_dtype, error);
  if (self->key == NULL)
    return FALSE;
  self->value = take_field (self, self->text->value_index, self->value_dtype, error);
  self->n_lines++;
  return self->value != NULL;
}

/* For muster_lookup_table_fill (). */
static gboolean
next (gpointer data, MusterTensor **key, MusterTensor **value, GError **error)
{
  Reader *self = data;
  if (!self->is_ahead && !next_line (self, error))
    return FALSE;
  self->is_ahead = FALSE;
  *key = self->key;
  *value = self->value;
  return TRUE;
}

static gboolean
is_text_or_int (MusterDType dtype)
{
  return dtype == MUSTER_STRING || dtype == MUSTER_INT32 || dtype == MUSTER_INT64;
}

static gboolean
check_columns_fit (const Reader *self, GError **error)
{
  const gint64 key = self->text->key_index, value = self->text->value_index;
  const char *key_name = muster_dtype_name (self->key_dtype);
  const char *value_name = muster_dtype_name (self->value_dtype);
  if (key == MUSTER_LOOKUP_LINE_NUMBER && self->key_dtype != MUSTER_INT64)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "Key index for line number requires table key dtype of int64, got %s",
                        key_name);
  if (value == MUSTER_LOOKUP_LINE_NUMBER && self->value_dtype != MUSTER_INT64)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "Value index for line number requires table value dtype of int64, got %s",
                        value_name);
  if (value == MUSTER_LOOKUP_WHOLE_LINE && !is_text_or_int (self->value_dtype))
    return muster_fail (
        error, MUSTER_ERROR_INVALID_ARGUMENT,
        "Value index for whole line requires table value dtype of integer or string, "
        "got %s",
        value_name);
  return TRUE;
}

/* As in TensorFlow, an error in the first line fails the op even if the table is already filled. */
static gboolean
fill (Reader *self, MusterLookupTable *table, GError **error)
{
  g_autoptr (GError) own = NULL;
  if (!open_text (self, error))
    return FALSE;
  if (!next_line (self, &own)) {
    if (own != NULL)
      g_propagate_error (error, g_steal_pointer (&own));
    else if (self->text->vocab_size == 0)
      muster_fail (error, MUSTER_ERROR_OUT_OF_RANGE, "Finished reading 0 of lines from %s",
                   self->text->filename);
    else
      muster_fail (error, MUSTER_ERROR_OUT_OF_RANGE, "Read less bytes than requested: %s is empty",
                   self->text->filename);
    return FALSE;
  }
  self->is_ahead = TRUE;
  return muster_lookup_table_is_filled (table) ||
         muster_lookup_table_fill (table, next, self, self->budget, error);
}

gboolean
muster_lookup_table_fill_from_text (MusterLookupTable *table, const MusterLookupText *text,
                                    MusterStorage *storage, GCancellable *cancellable,
                                    MusterBudget *budget, GError **error)
{
  Reader reader = {.text = text,
                   .key_dtype = muster_lookup_table_key_dtype (table),
                   .value_dtype = muster_lookup_table_value_dtype (table),
                   .storage = storage,
                   .cancellable = cancellable,
                   .budget = budget};
  if (!check_columns_fit (&reader, error))
    return FALSE;
  reader.chunk = g_malloc (CHUNK);
  reader.line = g_string_new (NULL);
  const gboolean done = fill (&reader, table, error);
  if (reader.input != NULL)
    muster_storage_close_input (storage, reader.input);
  drop_line (&reader);
  g_string_free (reader.line, TRUE);
  g_free (reader.chunk);
  return done;
}
