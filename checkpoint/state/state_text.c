// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/state/state_text.h"

#include "base/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NESTING 64

typedef struct {
  const char *at;
  const char *end;
  int line;
  const char *why; /* what was wrong at line; NULL as long as nothing was */
} Scanner;

/* A value: a text (owned), or a bare word (a number, an enum, true). */
typedef struct {
  gboolean is_text;
  GString *bytes;
} Value;

static gboolean
fail (Scanner *self, const char *why)
{
  if (self->why == NULL)
    self->why = why;
  return FALSE;
}

static int
peek (const Scanner *self)
{
  return self->at < self->end ? (guint8)*self->at : -1;
}

/* Blanks and comments. */
static void
skip_blanks (Scanner *self)
{
  for (int c; (c = peek (self)) != -1; self->at++) {
    if (c == '#')
      while (peek (self) != -1 && peek (self) != '\n')
        self->at++;
    c = peek (self);
    if (c == '\n')
      self->line++;
    else if (c == -1 || !g_ascii_isspace (c))
      return;
  }
}

static gboolean
accept (Scanner *self, char c)
{
  skip_blanks (self);
  if (peek (self) != c)
    return FALSE;
  self->at++;
  skip_blanks (self);
  return TRUE;
}

static gboolean
is_word_char (int c)
{
  return c != -1 && (g_ascii_isalnum (c) || strchr ("_.+-", c) != NULL);
}

static gboolean
scan_word (Scanner *self, GString *word)
{
  const char *start = self->at;
  while (is_word_char (peek (self)) && peek (self) != 0)
    self->at++;
  g_string_append_len (word, start, self->at - start);
  return self->at > start || fail (self, "a word is missing");
}

/* Up to max digits of a base, at least one. */
static gboolean
scan_digits (Scanner *self, int base, int max, guint32 *value)
{
  int n = 0;
  *value = 0;
  for (; n < max && self->at < self->end; n++, self->at++) {
    const int digit = g_ascii_xdigit_value (*self->at);
    if (digit < 0 || digit >= base)
      break;
    *value = *value * (guint32)base + (guint32)digit;
  }
  return n > 0 || fail (self, "an escape has no digits");
}

/* What stands after a backslash. */
static gboolean
scan_escape (Scanner *self, GString *text)
{
  static const char letters[] = "abfnrtv\\'\"?", meanings[] = "\a\b\f\n\r\t\v\\'\"?";
  const int c = peek (self);
  const char *known = c > 0 ? strchr (letters, c) : NULL;
  guint32 value;
  if (known != NULL) {
    g_string_append_c (text, meanings[known - letters]);
    self->at++;
    return TRUE;
  }
  if (c == 'u' || c == 'U') {
    self->at++;
    if (!scan_digits (self, 16, c == 'u' ? 4 : 8, &value))
      return FALSE;
    if (!g_unichar_validate (value))
      return fail (self, "an escape is not a character");
    g_string_append_unichar (text, value);
    return TRUE;
  }
  const gboolean is_hex = c == 'x' || c == 'X';
  self->at += is_hex;
  if (!scan_digits (self, is_hex ? 16 : 8, is_hex ? 2 : 3, &value))
    return FALSE;
  g_string_append_c (text, (char)value);
  return TRUE;
}

static gboolean
scan_text (Scanner *self, GString *text)
{
  const int quote = peek (self);
  self->at++;
  for (int c; (c = peek (self)) != quote;) {
    if (c == -1 || c == '\n')
      return fail (self, "a text has no closing quote");
    self->at++;
    if (c != '\\')
      g_string_append_c (text, (char)c);
    else if (!scan_escape (self, text))
      return FALSE;
  }
  self->at++;
  skip_blanks (self);
  return TRUE;
}

/* Texts that stand side by side are one. */
static gboolean
scan_value (Scanner *self, Value *value)
{
  g_string_truncate (value->bytes, 0);
  value->is_text = peek (self) == '"' || peek (self) == '\'';
  if (!value->is_text) {
    if (!scan_word (self, value->bytes))
      return fail (self, "a value is missing");
    skip_blanks (self);
    return TRUE;
  }
  while (peek (self) == '"' || peek (self) == '\'')
    if (!scan_text (self, value->bytes))
      return FALSE;
  return TRUE;
}

static gboolean
set_path (Scanner *self, char **path, const Value *value)
{
  if (!value->is_text || value->bytes->len == 0 || strlen (value->bytes->str) != value->bytes->len)
    return fail (self, "a path is not a text");
  g_free (*path);
  *path = g_strdup (value->bytes->str);
  return TRUE;
}

static gboolean
set_number (Scanner *self, double *number, const Value *value)
{
  char *end;
  *number = g_ascii_strtod (value->bytes->str, &end);
  if (*end == 'f' || *end == 'F')
    end++;
  return (!value->is_text && value->bytes->len > 0 && *end == '\0') ||
         fail (self, "a timestamp is not a number");
}

static gboolean
take (Scanner *self, MusterCheckpointState *state, const char *name, const Value *value)
{
  double number = 0;
  char *path = NULL;
  if (g_str_equal (name, "model_checkpoint_path"))
    return set_path (self, &state->latest, value);
  if (g_str_equal (name, "last_preserved_timestamp"))
    return set_number (self, &state->last_preserved, value);
  if (g_str_equal (name, "all_model_checkpoint_paths")) {
    if (!set_path (self, &path, value))
      return FALSE;
    g_ptr_array_add (state->all, path);
  } else if (g_str_equal (name, "all_model_checkpoint_timestamps")) {
    if (!set_number (self, &number, value))
      return FALSE;
    g_array_append_val (state->timestamps, number);
  }
  return TRUE;
}

static gboolean scan_fields (Scanner *self, MusterCheckpointState *state, int close, int nesting);

/* What stands after a field's name. state is NULL inside a field that isn't known. */
static gboolean
scan_content (Scanner *self, MusterCheckpointState *state, const char *name, Value *value,
              int nesting)
{
  if (nesting > MAX_NESTING)
    return fail (self, "it is nested too deep");
  const gboolean has_colon = accept (self, ':');
  if (accept (self, '{'))
    return scan_fields (self, NULL, '}', nesting + 1);
  if (accept (self, '<'))
    return scan_fields (self, NULL, '>', nesting + 1);
  if (!has_colon)
    return fail (self, "a ':' is missing");
  return scan_value (self, value) && (state == NULL || take (self, state, name, value));
}

/* A list: [1, 2]. Its elements are as if the field were repeated. */
static gboolean
scan_list (Scanner *self, MusterCheckpointState *state, const char *name, Value *value, int nesting)
{
  if (accept (self, ']'))
    return TRUE;
  do {
    if (accept (self, '{')) {
      if (!scan_fields (self, NULL, '}', nesting + 1))
        return FALSE;
    } else if (!scan_value (self, value) || (state != NULL && !take (self, state, name, value))) {
      return FALSE;
    }
  } while (accept (self, ','));
  return accept (self, ']') || fail (self, "a list has no end");
}

/* An extension's name in brackets, or a plain one. */
static gboolean
scan_name (Scanner *self, GString *name)
{
  g_string_truncate (name, 0);
  if (!accept (self, '['))
    return scan_word (self, name);
  g_string_append_c (name, '[');
  while (peek (self) != -1 && peek (self) != ']' && peek (self) != '\n')
    self->at++;
  return accept (self, ']') || fail (self, "a name has no end");
}

static gboolean
scan_field (Scanner *self, MusterCheckpointState *state, GString *name, Value *value, int nesting)
{
  if (!scan_name (self, name))
    return FALSE;
  skip_blanks (self);
  const char *before = self->at;
  const int line = self->line;
  if (accept (self, ':') && accept (self, '['))
    return scan_list (self, state, name->str, value, nesting);
  self->at = before;
  self->line = line;
  return scan_content (self, state, name->str, value, nesting);
}

/* Fields up to a closing bracket, or to the end of the file (close is -1). */
static gboolean
scan_fields (Scanner *self, MusterCheckpointState *state, int close, int nesting)
{
  Value value = {.bytes = g_string_new (NULL)};
  GString *name = g_string_new (NULL);
  gboolean is_sound = nesting <= MAX_NESTING || fail (self, "it is nested too deep");
  skip_blanks (self);
  while (is_sound && peek (self) != close) {
    is_sound = scan_field (self, state, name, &value, nesting);
    if (is_sound && !accept (self, ',') && !accept (self, ';'))
      skip_blanks (self);
  }
  if (is_sound && close != -1)
    accept (self, (char)close);
  g_string_free (name, TRUE);
  g_string_free (value.bytes, TRUE);
  return is_sound;
}

MusterCheckpointState *
muster_state_text_parse (const char *text, gsize size, GError **error)
{
  g_autoptr (MusterCheckpointState) state = muster_checkpoint_state_new ();
  text = size > 0 ? text : ""; /* an empty file's bytes are NULL */
  Scanner scanner = {.at = text, .end = text + size, .line = 1};
  if (!scan_fields (&scanner, state, -1, 0)) {
    muster_fail (error, MUSTER_ERROR_DATA_LOSS, "line %d: %s", scanner.line,
                 scanner.why != NULL ? scanner.why : "it is malformed");
    return NULL;
  }
  return g_steal_pointer (&state);
}

static void
print_path (GString *out, const char *field, const char *path)
{
  static const char plain[] = "\n\r\t\"'\\", letters[] = "nrt\"'\\";
  g_string_append_printf (out, "%s: \"", field);
  for (const char *at = path; *at != '\0'; at++) {
    const char *known = strchr (plain, *at);
    if (known != NULL) {
      g_string_append_printf (out, "\\%c", letters[known - plain]);
    } else if ((guint8)*at >= 0x80 && g_utf8_get_char_validated (at, -1) < (gunichar)-2) {
      const char *next = g_utf8_next_char (at);
      g_string_append_len (out, at, next - at);
      at = next - 1;
    } else if ((guint8)*at < 0x20 || (guint8)*at >= 0x7f) {
      g_string_append_printf (out, "\\%03o", (guint)(guint8)*at);
    } else {
      g_string_append_c (out, *at);
    }
  }
  g_string_append (out, "\"\n");
}

/* As Python writes a double: the fewest digits that give it back; never without a point or an
 * exponent. */
static void
print_number (GString *out, const char *field, double number)
{
  char format[16], text[64];
  int precision = 0; /* digits behind the first */
  if (!isfinite (number)) {
    const char *word = isnan (number) ? "nan" : (number > 0 ? "inf" : "-inf");
    g_string_append_printf (out, "%s: %s\n", field, word);
    return;
  }
  do {
    g_snprintf (format, sizeof format, "%%.%de", precision);
    g_ascii_formatd (text, sizeof text, format, number);
  } while (g_ascii_strtod (text, NULL) != number && ++precision < 17);
  const int exponent = atoi (strchr (text, 'e') + 1);
  if (exponent >= -4 && exponent < 16) {
    g_snprintf (format, sizeof format, "%%.%df", MAX (precision - exponent, 1));
    g_ascii_formatd (text, sizeof text, format, number);
  }
  g_string_append_printf (out, "%s: %s\n", field, text);
}

char *
muster_state_text_print (const MusterCheckpointState *state)
{
  GString *out = g_string_new (NULL);
  if (state->latest != NULL)
    print_path (out, "model_checkpoint_path", state->latest);
  for (guint i = 0; i < state->all->len; i++)
    print_path (out, "all_model_checkpoint_paths", state->all->pdata[i]);
  for (guint i = 0; i < state->timestamps->len; i++)
    print_number (out, "all_model_checkpoint_timestamps",
                  g_array_index (state->timestamps, double, i));
  if (state->last_preserved != 0)
    print_number (out, "last_preserved_timestamp", state->last_preserved);
  return g_string_free (out, FALSE);
}
