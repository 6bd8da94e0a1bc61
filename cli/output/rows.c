// SPDX-License-Identifier: Apache-2.0
/* The reasons of a wait as rows for a terminal: component, state, text and age, wrapped to its
 * width. */
#include "cli/output/rows.h"

#include "base/clock.h"
#include "cli/output/sanitise.h"

#include <string.h>

#define COMPONENT_WIDTH 10
#define STATE_WIDTH     10
#define LEAST_TEXT      24 /* where less is left, the text is cut */
#define LEAST_AGE_US    MUSTER_SECOND
#define WELL_COLOUR     "\033[32m"
#define UNWELL_COLOUR   "\033[33m"
#define NO_COLOUR       "\033[0m"

typedef struct {
  const char *component; /* static; NULL: only the text */
  char *state;           /* (owned) (nullable) "restoring", "12 of 104" */
  char *text;            /* (owned) may be empty */
  gint64 since_us;       /* 0: not shown */
  gboolean is_well;
} Row;

static void
row_free (gpointer data)
{
  Row *self = data;
  g_free (self->state);
  g_free (self->text);
  g_free (self);
}

/* Splits the state off a text that begins with it, so that it is shown in its own column. */
static void
split (Row *self, const MusterReason *reason)
{
  g_autofree char *state = g_strdelimit (g_strdup (reason->state), "-", ' ');
  gsize n = strlen (state);
  if (strcmp (reason->component, "variables") == 0 && reason->n_missing > 0 &&
      reason->n_total > 0) {
    self->state =
        g_strdup_printf ("%u of %u", reason->n_total - reason->n_missing, reason->n_total);
    self->text = muster_cli_one_line (reason->text);
  } else if (g_str_has_prefix (reason->text, state) &&
             (reason->text[n] == '\0' || reason->text[n] == ' ')) {
    self->state = g_steal_pointer (&state);
    self->text = muster_cli_one_line (reason->text[n] == ' ' ? reason->text + n + 1 : "");
  } else {
    self->text = muster_cli_one_line (reason->text);
  }
}

/* Components with an unknown or an obvious state are omitted. */
static gboolean
has_something_to_say (const MusterReason *reason, gboolean has_problem)
{
  if (strcmp (reason->state, "unknown") == 0)
    return !reason->is_well && !has_problem;
  return strcmp (reason->component, "job") != 0 || !reason->is_well;
}

GPtrArray *
muster_rows_new (const char *message, GPtrArray *reasons)
{
  GPtrArray *rows = g_ptr_array_new_with_free_func (row_free);
  gboolean has_problem = FALSE;
  for (guint i = 0; reasons != NULL && i < reasons->len; i++) {
    const MusterReason *it = g_ptr_array_index (reasons, i);
    if (has_something_to_say (it, has_problem)) {
      Row *row = g_new0 (Row, 1);
      row->component = it->component;
      row->is_well = it->is_well;
      row->since_us = it->is_well ? 0 : it->since_us;
      split (row, it);
      g_ptr_array_add (rows, row);
    }
    has_problem = has_problem || !it->is_well;
  }
  if (rows->len == 0) {
    Row *row = g_new0 (Row, 1);
    row->text = muster_cli_one_line (message);
    g_ptr_array_add (rows, row);
  }
  return rows;
}

char *
muster_rows_summary (const char *message, GPtrArray *reasons)
{
  const MusterReason *first = muster_reasons_first (reasons);
  if (first == NULL)
    return muster_cli_one_line (message);
  const MusterReason *variables = muster_reasons_find (reasons, "variables");
  GString *text = g_string_new (NULL);
  if (first == variables && first->n_missing > 0)
    g_string_append (text, "variables ");
  if (strcmp (first->component, "chief") == 0 && !g_str_has_prefix (first->text, "no "))
    g_string_append (text, "chief ");
  g_string_append (text, first->text);
  if (first != variables && variables != NULL && variables->n_missing > 0)
    g_string_append_printf (text, "; variables missing: %u", variables->n_missing);
  g_autofree char *all = g_string_free (text, FALSE);
  return muster_cli_one_line (all);
}

char *
muster_rows_seconds (gint64 duration_us)
{
  gint64 seconds = duration_us / MUSTER_SECOND;
  return seconds < 60 ? g_strdup_printf ("%d s", (int)seconds)
                      : muster_format_duration (seconds * MUSTER_SECOND);
}

static guint
width_of (gunichar c)
{
  return g_unichar_iszerowidth (c) ? 0 : g_unichar_iswide (c) ? 2 : 1;
}

/* Appends as much of text as fits, and subtracts it from *left. A newline ends it. */
static void
append_cut (GString *line, const char *text, guint *left)
{
  for (const char *at = text; *at != '\0' && *at != '\n'; at = g_utf8_next_char (at)) {
    gunichar c = g_utf8_get_char (at);
    guint width = width_of (c);
    if (width > *left) {
      *left = 0;
      return;
    }
    g_string_append_unichar (line, c);
    *left -= width;
  }
}

/* The component in the colour of its state. */
static void
append_component (GString *line, const Row *row, gboolean coloured, guint *left)
{
  g_autofree char *padding =
      g_strnfill ((gsize)MAX (COMPONENT_WIDTH - (int)strlen (row->component), 0) + 1, ' ');
  if (coloured)
    g_string_append (line, row->is_well ? WELL_COLOUR : UNWELL_COLOUR);
  append_cut (line, row->component, left);
  if (coloured)
    g_string_append (line, NO_COLOUR);
  append_cut (line, padding, left);
}

/* "missing 15: a, b, …, for 12 s" */
static char *
text_of (const Row *row, gint64 now_us)
{
  if (row->since_us <= 0 || now_us - row->since_us < LEAST_AGE_US)
    return g_strdup (row->text);
  g_autofree char *age = muster_rows_seconds (now_us - row->since_us);
  return g_strdup_printf ("%s%sfor %s", row->text, *row->text != '\0' ? ", " : "", age);
}

static void
append_row (GString *block, const Row *row, gint64 now_us, guint width, gboolean coloured)
{
  guint left = width;
  g_autofree char *text = text_of (row, now_us);
  append_cut (block, "  ", &left);
  if (row->component != NULL)
    append_component (block, row, coloured, &left);
  if (row->state != NULL) {
    g_autofree char *state =
        *text == '\0' ? g_strdup (row->state) : g_strdup_printf ("%-*s ", STATE_WIDTH, row->state);
    append_cut (block, state, &left);
  }
  if (left >= LEAST_TEXT) {
    muster_cli_append_wrapped (block, text, width - left, width);
    return;
  }
  append_cut (block, text, &left);
  g_string_append_c (block, '\n');
}

/* Removes what is below the first lines. */
static void
cut_lines (GString *block, guint n_lines)
{
  const char *at = block->str;
  for (guint n = 0; n < n_lines && at != NULL; n++) {
    at = strchr (at, '\n');
    at = at != NULL ? at + 1 : NULL;
  }
  if (at != NULL)
    g_string_truncate (block, (gsize)(at - block->str));
}

char *
muster_rows_draw (const char *head, GPtrArray *rows, gint64 now_us, guint width, guint n_lines,
                  gboolean coloured)
{
  GString *block = g_string_new (NULL);
  guint left = width;
  append_cut (block, head, &left);
  g_string_append_c (block, '\n');
  for (guint i = 0; i < rows->len; i++)
    append_row (block, g_ptr_array_index (rows, i), now_us, width, coloured);
  cut_lines (block, n_lines);
  return g_string_free (block, FALSE);
}
