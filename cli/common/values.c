// SPDX-License-Identifier: Apache-2.0
/* Prints a tensor's values in rows, like NumPy: aligned, and shortened in the middle. */
#include "cli/common/values.h"

#include "cli/output/sanitise.h"

#include <string.h>

#define MANY         1000   /* the maximum of elements shown without --full */
#define EDGE         3      /* elements shown at each end of a longer dimension */
#define LINE         79     /* columns without a terminal */
#define LONGEST_TEXT 60     /* bytes of a string */
#define ROUNDED      "%.5g" /* so that six of them fit a line */

typedef struct {
  FILE *to; /* NULL: only measures */
  const MusterTensor *tensor;
  gint64 edge; /* G_MAXINT64: all */
  gsize most;  /* bytes of a string */
  gboolean is_rounded;
  int indent;
  int line;      /* columns of a line */
  int width;     /* the width of the widest element; 0: each element's own */
  int column;    /* the column of the next element */
  GString *text; /* of one element */
  char *gap;     /* the text for omitted elements */
} Printer;

static gboolean
is_shortened (const Printer *self, gint64 length)
{
  return self->edge < G_MAXINT64 && length > 2 * self->edge;
}

/* The number of elements shown of a shape, or more than MANY. */
static gint64
shown (const MusterTensor *tensor, gint64 edge)
{
  gint64 n = 1;
  for (int d = 0; d < muster_tensor_n_dims (tensor) && n <= MANY; d++)
    n *= MIN (muster_tensor_dims (tensor)[d], 2 * edge);
  return n;
}

static void
put (Printer *self, const char *text)
{
  if (self->to == NULL)
    return;
  fputs (text, self->to);
  self->column += (int)g_utf8_strlen (text, -1);
}

static void
new_line (Printer *self, int columns)
{
  if (self->to == NULL)
    return;
  fprintf (self->to, "\n%*s", columns, "");
  self->column = columns;
}

static gboolean
is_real (MusterDType dtype)
{
  return dtype == MUSTER_FLOAT || dtype == MUSTER_DOUBLE || dtype == MUSTER_HALF ||
         dtype == MUSTER_BFLOAT16;
}

/* Formats an element; returns its width in columns. */
static int
format_element (Printer *self, gint64 i)
{
  g_string_truncate (self->text, 0);
  muster_tensor_append_element (self->text, self->tensor, i, self->most);
  if (muster_tensor_dtype (self->tensor) == MUSTER_STRING) {
    g_autofree char *sanitised = muster_cli_sanitise (self->text->str);
    g_string_assign (self->text, sanitised);
  }
  if (self->is_rounded) {
    char digits[G_ASCII_DTOSTR_BUF_SIZE];
    const double value = g_ascii_strtod (self->text->str, NULL);
    g_string_assign (self->text, g_ascii_formatd (digits, sizeof digits, ROUNDED, value));
  }
  return (int)g_utf8_strlen (self->text->str, -1);
}

static void
put_element (Printer *self, int width)
{
  for (int pad = width; pad < self->width; pad++)
    put (self, " ");
  put (self, self->text->str);
}

/* Measures the widest element shown in a row. */
static void
measure_row (Printer *self, gint64 first, gint64 length)
{
  for (gint64 i = 0; i < length; i++) {
    if (is_shortened (self, length) && i == self->edge)
      i = length - self->edge - 1;
    else
      self->width = MAX (self->width, format_element (self, first + i));
  }
}

/* Prints the elements of the innermost dimension, as many per line as fit. */
static void
print_row (Printer *self, gint64 first, gint64 length, int depth)
{
  for (gint64 i = 0; i < length; i++) {
    const gboolean gap = is_shortened (self, length) && i == self->edge;
    const int width = gap ? (int)muster_cli_columns (self->gap) : format_element (self, first + i);
    if (i > 0) {
      put (self, ",");
      if (self->column + 1 + MAX (width, gap ? 0 : self->width) + 1 > self->line)
        new_line (self, depth);
      else
        put (self, " ");
    }
    if (gap) {
      put (self, self->gap);
      i = length - self->edge - 1;
    } else {
      put_element (self, width);
    }
  }
}

static void
print_dim (Printer *self, int dim, gint64 first)
{
  const int n_dims = muster_tensor_n_dims (self->tensor), depth = self->indent + dim + 1;
  const gint64 length = muster_tensor_dims (self->tensor)[dim];
  const gint64 step =
      muster_shape_n_elements (n_dims - dim - 1, muster_tensor_dims (self->tensor) + dim + 1);
  if (self->to == NULL && dim == n_dims - 1) {
    measure_row (self, first, length);
    return;
  }
  put (self, "[");
  if (dim == n_dims - 1)
    print_row (self, first, length, depth);
  for (gint64 i = 0; i < length && dim < n_dims - 1; i++) {
    const gboolean gap = is_shortened (self, length) && i == self->edge;
    if (i > 0) {
      put (self, ",");
      new_line (self, depth);
    }
    if (gap) {
      put (self, self->gap);
      i = length - self->edge - 1;
    } else {
      print_dim (self, dim + 1, first + i * step);
    }
  }
  put (self, "]");
}

static void
print_all (Printer *self)
{
  if (muster_tensor_n_elements (self->tensor) == 0)
    put (self, "[]");
  else if (muster_tensor_n_dims (self->tensor) == 0)
    put_element (self, format_element (self, 0));
  else
    print_dim (self, 0, 0);
}

void
muster_values_print (FILE *to, const MusterTensor *tensor, gboolean is_full, int indent)
{
  const gint64 n = muster_tensor_n_elements (tensor);
  g_autoptr (GString) text = g_string_new (NULL);
  g_autofree char *gap = muster_cli_sanitise ("…");
  const guint columns = muster_cli_terminal_columns (to);
  Printer printer = {.tensor = tensor,
                     .edge = G_MAXINT64,
                     .most = is_full ? G_MAXSIZE : LONGEST_TEXT,
                     .is_rounded = !is_full && n > 1 && is_real (muster_tensor_dtype (tensor)),
                     .indent = indent,
                     .line = columns > 0 ? (int)columns : LINE,
                     .text = text,
                     .gap = gap};
  if (!is_full && n > MANY)
    for (printer.edge = EDGE; printer.edge > 0 && shown (tensor, printer.edge) > MANY;)
      printer.edge--;
  if (!is_full &&
      n > 0) /* align in columns; if all elements are shown, measuring would double the time */
    print_all (&printer);
  printer.to = to;
  fprintf (to, "%*s", indent, "");
  printer.column = indent;
  print_all (&printer);
  fputc ('\n', to);
}
