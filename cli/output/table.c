// SPDX-License-Identifier: Apache-2.0
/* Draws a table with aligned columns, and wraps the last one to the terminal's width. */
#include "cli/output/table.h"

#include "cli/output/sanitise.h"

#include <string.h>

#define GAP        2  /* columns between two cells */
#define LEAST_LAST 24 /* the minimum width of a long last cell beside the others */
#define INDENT     2  /* the indentation of text below a row's first cell */
#define NO_COLOUR  "\033[0m"

typedef struct {
  char **cells;       /* (owned) */
  const char *colour; /* static (nullable) */
} Row;

struct _MusterTable {
  guint n_columns;
  guint *widths; /* (owned) one for each column */
  GArray *rows;  /* (owned) (element-type Row) */
};

static void
row_clear (gpointer data)
{
  g_strfreev (((Row *)data)->cells);
}

MusterTable *
muster_table_new (guint n_columns)
{
  MusterTable *self = g_new0 (MusterTable, 1);
  self->n_columns = n_columns;
  self->widths = g_new0 (guint, n_columns);
  self->rows = g_array_new (FALSE, TRUE, sizeof (Row));
  g_array_set_clear_func (self->rows, row_clear);
  return self;
}

void
muster_table_free (MusterTable *self)
{
  if (self == NULL)
    return;
  g_array_unref (self->rows);
  g_free (self->widths);
  g_free (self);
}

void
muster_table_add (MusterTable *self, ...)
{
  Row row = {.cells = g_new0 (char *, self->n_columns + 1)};
  va_list arguments;
  va_start (arguments, self);
  const char *cell = va_arg (arguments, const char *);
  for (guint i = 0; i < self->n_columns; i++) {
    row.cells[i] = muster_cli_one_line (cell != NULL ? cell : "");
    self->widths[i] = MAX (self->widths[i], muster_cli_columns (row.cells[i]));
    cell = cell != NULL ? va_arg (arguments, const char *) : NULL;
  }
  va_end (arguments);
  g_array_append_val (self->rows, row);
}

void
muster_table_colour (MusterTable *self, const char *colour)
{
  g_array_index (self->rows, Row, self->rows->len - 1).colour = colour;
}

/* --- drawing --- */

/* The width of the cells before the last one, from `first`. */
static guint
before_last (const MusterTable *self, guint first, guint indent)
{
  guint columns = indent;
  for (guint i = first; i + 1 < self->n_columns; i++)
    columns += self->widths[i] + GAP;
  return columns;
}

/* Returns TRUE if the last cell fits beside the cells from `first`. */
static gboolean
fits (const MusterTable *self, guint first, guint indent, guint columns)
{
  const guint last = MIN (self->widths[self->n_columns - 1], LEAST_LAST);
  return columns == 0 || before_last (self, first, indent) + last <= columns;
}

static void
append_blanks (GString *out, guint n)
{
  g_string_append_printf (out, "%*s", (int)n, "");
}

static void
append_first (GString *out, const Row *row)
{
  const char *text = row->cells[0];
  const char *second = *text != '\0' ? g_utf8_next_char (text) : text;
  if (row->colour == NULL)
    g_string_append (out, text);
  else
    g_string_append_printf (out, "%s%.*s" NO_COLOUR "%s", row->colour, (int)(second - text), text,
                            second);
}

/* Removes trailing blanks of the line. */
static void
trim (GString *out)
{
  gsize n = out->len;
  while (n > 0 && out->str[n - 1] == ' ')
    n--;
  g_string_truncate (out, n);
}

/* Appends the cells from `first`; `indent` columns have been written. */
static void
append_cells (const MusterTable *self, GString *out, const Row *row, guint first, guint indent,
              guint columns)
{
  const guint last = self->n_columns - 1;
  for (guint i = first; i < last; i++) {
    if (i == 0)
      append_first (out, row);
    else
      g_string_append (out, row->cells[i]);
    append_blanks (out, self->widths[i] + GAP - muster_cli_columns (row->cells[i]));
  }
  if (*row->cells[last] == '\0') {
    trim (out);
    g_string_append_c (out, '\n');
  } else if (fits (self, first, indent, columns)) {
    muster_cli_append_wrapped (out, row->cells[last], before_last (self, first, indent), columns);
  } else {
    trim (out);
    g_string_append_c (out, '\n');
    append_blanks (out, indent + INDENT);
    muster_cli_append_wrapped (out, row->cells[last], indent + INDENT, columns);
  }
}

/* The indentation of cells that continue below a row's first cell. */
static guint
indent_of (const MusterTable *self)
{
  const Row *first = &g_array_index (self->rows, Row, 0);
  return (guint)strspn (first->cells[0], " ") + INDENT;
}

char *
muster_table_draw (const MusterTable *self, guint columns)
{
  GString *out = g_string_new (NULL);
  const gboolean is_stacked = self->n_columns > 1 && !fits (self, 0, 0, columns);
  const guint indent = is_stacked && self->rows->len > 0 ? indent_of (self) : 0;
  for (guint i = 0; i < self->rows->len; i++) {
    const Row *row = &g_array_index (self->rows, Row, i);
    if (is_stacked) {
      append_first (out, row);
      g_string_append_c (out, '\n');
      append_blanks (out, indent);
    }
    append_cells (self, out, row, is_stacked ? 1 : 0, indent, columns);
  }
  return g_string_free (out, FALSE);
}

void
muster_table_print (const MusterTable *self, FILE *to)
{
  g_autofree char *text = muster_table_draw (self, muster_cli_terminal_columns (to));
  fputs (text, to);
  (void)muster_cli_flush (to);
}
