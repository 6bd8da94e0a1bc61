// SPDX-License-Identifier: Apache-2.0
#include "cli/output/progress.h"

#include "cli/output/rows.h"
#include "cli/output/sanitise.h"

#include <string.h>

#define QUIET_US      MUSTER_SECOND /* shorter operations have no bar */
#define REDRAW_US     (MUSTER_SECOND / 10)
#define WINDOW_US     (2 * MUSTER_SECOND) /* the rate covers the last one or two of these */
#define DEFAULT_WIDTH 80
#define LEAST_BAR     8
#define MOST_BAR      30
#define ERASE         "\r\033[K"

typedef struct {
  gint64 at_us;
  guint64 done;
} Mark;

struct _MusterProgress {
  FILE *to;           /* (not owned) (nullable) */
  MusterClock *clock; /* (owned) */
  gboolean coloured;
  char *what; /* (owned) */
  guint64 before, all;
  gint64 started_us, drawn_us;
  gboolean is_drawn;
  Mark older, newer; /* the marks that the rate is computed from */
};

MusterProgress *
muster_progress_new (FILE *to, gboolean coloured, MusterClock *clock)
{
  MusterProgress *self = g_new0 (MusterProgress, 1);
  self->to = to;
  self->coloured = coloured;
  self->clock = g_object_ref (clock);
  self->what = g_strdup ("");
  self->started_us = muster_clock_now_us (clock);
  self->older.at_us = self->newer.at_us = self->started_us;
  return self;
}

void
muster_progress_free (MusterProgress *self)
{
  if (self == NULL)
    return;
  muster_progress_hide (self);
  g_object_unref (self->clock);
  g_free (self->what);
  g_free (self);
}

void
muster_progress_hide (MusterProgress *self)
{
  if (!self->is_drawn)
    return;
  fputs (ERASE, self->to);
  fflush (self->to);
  self->is_drawn = FALSE;
}

void
muster_progress_part (MusterProgress *self, const char *what, guint64 before, guint64 all)
{
  g_free (self->what);
  self->what = muster_cli_one_line (what);
  self->before = before;
  self->all = all;
}

char *
muster_progress_line (const char *what, guint64 done, guint64 all, double rate, guint width,
                      gboolean coloured)
{
  done = MIN (done, all);
  const double part = all > 0 ? (double)done / (double)all : 0;
  g_autofree char *so_far = muster_format_size (done), *of = muster_format_size (all);
  g_autoptr (GString) numbers = g_string_new (NULL);
  g_string_append_printf (numbers, "  %d %%, %s of %s", (int)(part * 100), so_far, of);
  if (rate >= 1) {
    g_autofree char *speed = muster_format_size ((guint64)rate);
    const double left = MIN ((double)(all - done) / rate, 1e9); /* seconds */
    g_autofree char *time = muster_rows_seconds ((gint64)(left * MUSTER_SECOND) + MUSTER_SECOND);
    g_string_append_printf (numbers, ", %s/s, %s left", speed, time);
  }
  const guint n = (guint)g_utf8_strlen (numbers->str, -1), name = (guint)g_utf8_strlen (what, -1);
  GString *line = g_string_new (NULL);
  if (n + name > width) { /* the numbers are more important than the name */
    g_autofree char *cut = g_utf8_substring (what, 0, n < width ? width - n : 0);
    g_string_append (line, cut);
  } else {
    g_string_append (line, what);
    if (n + name + 2 + LEAST_BAR <= width) {
      g_string_append (line, "  ");
      muster_cli_append_bar (line, part, MIN (width - n - name - 2, MOST_BAR), coloured);
    }
  }
  g_string_append (line, n <= width ? numbers->str : "");
  return g_string_free (line, FALSE);
}

static guint
width_of (FILE *to)
{
  const guint columns = muster_cli_terminal_columns (to);
  return (columns > 1 ? columns : DEFAULT_WIDTH) - 1; /* a wrapped line couldn't be erased */
}

static double
rate_at (MusterProgress *self, gint64 now_us, guint64 done)
{
  if (now_us - self->newer.at_us >= WINDOW_US) {
    self->older = self->newer;
    self->newer = (Mark){now_us, done};
  }
  const gint64 took_us = now_us - self->older.at_us;
  if (took_us <= 0 || done <= self->older.done)
    return 0;
  return (double)(done - self->older.done) * MUSTER_SECOND / (double)took_us;
}

void
muster_progress_at (guint64 done, guint64 total G_GNUC_UNUSED, gpointer user_data)
{
  MusterProgress *self = user_data;
  if (self->to == NULL)
    return;
  const gint64 now_us = muster_clock_now_us (self->clock);
  const guint64 sum = self->before + done;
  const double rate = rate_at (self, now_us, sum);
  if (now_us - self->started_us < QUIET_US || now_us - self->drawn_us < REDRAW_US)
    return;
  g_autofree char *line =
      muster_progress_line (self->what, sum, self->all, rate, width_of (self->to), self->coloured);
  fprintf (self->to, ERASE "%s", line);
  fflush (self->to);
  self->drawn_us = now_us;
  self->is_drawn = TRUE;
}
