// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/train_line.h"

#include "cli/output/figures.h"
#include "cli/output/rows.h"
#include "cli/output/sanitise.h"
#include "status/saves.h"

#include <math.h>

#define LEAST_BAR      8
#define MOST_BAR       24
#define LEAST_WITH_BAR 60 /* columns: a narrower line has only the numbers */

static char *
rate_text (double rate)
{
  g_autofree char *text = muster_figure_steps_rate (rate);
  return rate > 0 ? g_strdup_printf (", %s", text) : g_strdup ("");
}

static char *
left_text (const MusterTrainingState *state)
{
  if (state->left_us < 0 || state->step >= state->until_step)
    return g_strdup ("");
  g_autofree char *left = muster_rows_seconds (state->left_us + MUSTER_SECOND);
  return g_strdup_printf (", %s left", left);
}

/* The text for a task that waits for others, as it has finished or the job needs more of them. */
static char *
awaits_text (const MusterTrainingState *state)
{
  if (state->paused != NULL)
    return g_strdup_printf (", %s", state->paused);
  if (state->awaits == NULL)
    return g_strdup ("");
  g_autofree char *idle = muster_rows_seconds (state->awaits_us);
  return g_strdup_printf (", waiting for %s: no batch for %s", state->awaits, idle);
}

/* Appends text if it fits. */
static void
append_if_fits (GString *text, const char *more, guint columns_left)
{
  if (text->len + strlen (more) <= columns_left)
    g_string_append (text, more);
}

/* The numbers, the most important first. */
static char *
numbers_of (const MusterTrainingState *state, guint columns_left)
{
  GString *text = g_string_new (NULL);
  g_string_append_printf (text, "step %" G_GINT64_FORMAT, state->step);
  if (state->until_step < G_MAXINT64)
    g_string_append_printf (text, " of %" G_GINT64_FORMAT, state->until_step);
  g_autofree char *rate = rate_text (state->steps_per_second), *left = left_text (state);
  g_autofree char *awaits = awaits_text (state);
  g_autofree char *loss =
      isnan (state->loss) ? g_strdup ("") : g_strdup_printf (", loss %.4g", state->loss);
  g_autofree char *durable =
      state->durable_step < 0
          ? g_strdup ("")
          : g_strdup_printf (", durable %" G_GINT64_FORMAT, state->durable_step);
  g_autofree char *news = state->saves != NULL ? muster_saves_news (state->saves) : g_strdup ("");
  append_if_fits (text, awaits, columns_left);
  append_if_fits (text, rate, columns_left);
  append_if_fits (text, loss, columns_left);
  append_if_fits (text, left, columns_left);
  append_if_fits (text, durable, columns_left);
  append_if_fits (text, news, columns_left);
  return g_string_free (text, FALSE);
}

char *
muster_train_line (const MusterTrainingState *state, guint width, gboolean coloured)
{
  const char *head = "training  ";
  const gboolean has_bar = width > 0 && state->until_step < G_MAXINT64 && state->until_step > 0;
  const guint taken =
      (guint)strlen (head) + (has_bar && width >= LEAST_WITH_BAR ? LEAST_BAR + 2 : 0);
  const guint columns_left = width == 0 ? G_MAXUINT : width > taken ? width - taken : 0;
  g_autofree char *numbers = numbers_of (state, columns_left);
  g_autoptr (GString) line = g_string_new (head);
  const guint used = (guint)(strlen (head) + strlen (numbers)) + 2;
  if (has_bar && used + LEAST_BAR <= width) {
    const guint columns = MIN (width - used, MOST_BAR);
    const double part = CLAMP ((double)state->step / (double)state->until_step, 0, 1);
    muster_cli_append_bar (line, part, columns, coloured);
    g_string_append (line, "  ");
  }
  g_string_append (line, numbers);
  return g_strdup (line->str);
}
