// SPDX-License-Identifier: Apache-2.0
#include "base/goodput.h"

#include <math.h>
#include <string.h>

#define LEAST_PERCENT 0.1 /* what one decimal shows */

gint64
muster_goodput_total_us (const MusterGoodput *self)
{
  g_return_val_if_fail (self != NULL, 0);

  gint64 total_us = 0;
  for (guint i = 0; i < MUSTER_N_TIMES; i++)
    total_us += self->spent_us[i];
  return total_us;
}

gint64
muster_goodput_lost_us (const MusterGoodput *self)
{
  g_return_val_if_fail (self != NULL, 0);
  return muster_goodput_total_us (self) - self->spent_us[MUSTER_TIME_TRAINING];
}

double
muster_goodput_share (const MusterGoodput *self)
{
  g_return_val_if_fail (self != NULL, 0);

  const gint64 total_us = muster_goodput_total_us (self);
  return total_us > 0 ? (double)self->spent_us[MUSTER_TIME_TRAINING] / (double)total_us : 1;
}

const char *
muster_time_use_name (MusterTimeUse use)
{
  static const char *const names[] = {"training",     "repeated",  "saving", "waiting",
                                      "initialising", "restoring", "down",   "paused"};
  return (guint)use < G_N_ELEMENTS (names) ? names[use] : "unknown";
}

/* "61,000" */
static char *
grouped (guint64 number)
{
  g_autofree char *digits = g_strdup_printf ("%" G_GUINT64_FORMAT, number);
  const gsize n = strlen (digits);
  GString *text = g_string_new (NULL);
  for (gsize i = 0; i < n; i++) {
    if (i > 0 && (n - i) % 3 == 0)
      g_string_append_c (text, ',');
    g_string_append_c (text, digits[i]);
  }
  return g_string_free (text, FALSE);
}

/* "3 restarts: 2.1 s down, 38 s for 61,000 steps trained again", "start 0.1 s" */
static void
append_starts (GString *text, const MusterGoodput *self)
{
  const gint64 down_us = self->spent_us[MUSTER_TIME_WAITING] +
                         self->spent_us[MUSTER_TIME_INITIALISING] +
                         self->spent_us[MUSTER_TIME_RESTORING] + self->spent_us[MUSTER_TIME_DOWN];
  g_autofree char *down = muster_format_duration (down_us);
  g_autofree char *again = muster_format_duration (self->spent_us[MUSTER_TIME_REPEATED]);
  g_autofree char *steps = grouped (self->steps_again);

  if (self->n_restarts == 0)
    g_string_append_printf (text, "start %s", down);
  else
    g_string_append_printf (text, "%" G_GUINT64_FORMAT " restart%s: %s down", self->n_restarts,
                            self->n_restarts == 1 ? "" : "s", down);
  if (self->steps_again > 0)
    g_string_append_printf (text, ", %s for %s%s step%s trained again", again,
                            self->is_least ? "at least " : "", steps,
                            self->steps_again == 1 ? "" : "s");
}

char *
muster_goodput_text (const MusterGoodput *self)
{
  g_return_val_if_fail (self != NULL, NULL);

  g_autofree char *lost = muster_format_duration (muster_goodput_lost_us (self));
  g_autofree char *total = muster_format_duration (muster_goodput_total_us (self));
  g_autofree char *trained = muster_format_duration (self->spent_us[MUSTER_TIME_TRAINING]);
  g_autofree char *saves = muster_format_duration (self->spent_us[MUSTER_TIME_SAVING]);
  g_autofree char *paused = muster_format_duration (self->spent_us[MUSTER_TIME_PAUSED]);
  /* Rounded down: 100.0 % is nothing lost. */
  const double percent = floor (muster_goodput_share (self) * 1000) / 10;
  GString *text = g_string_new (NULL);

  if (self->spent_us[MUSTER_TIME_TRAINING] == 0)
    g_string_append_printf (text, "goodput: no step trained yet, in %s (", total);
  else if (percent < LEAST_PERCENT) /* "0.0 %: 82 ms of 82 ms lost" says less */
    g_string_append_printf (text, "goodput: %s of training in %s (", trained, total);
  else
    g_string_append_printf (text, "goodput %.1f %%: %s of %s lost (", percent, lost, total);
  append_starts (text, self);
  if (self->spent_us[MUSTER_TIME_PAUSED] > 0)
    g_string_append_printf (text, "; paused %s", paused);
  g_string_append_printf (text, "; saves %s)", saves);
  return g_string_free (text, FALSE);
}

MusterGoodput *
muster_goodput_new (void)
{
  return g_memdup2 (&(MusterGoodput)MUSTER_GOODPUT_INIT, sizeof (MusterGoodput));
}

MusterGoodput *
muster_goodput_copy (const MusterGoodput *self)
{
  return self != NULL ? g_memdup2 (self, sizeof *self) : NULL;
}

void
muster_goodput_free (MusterGoodput *self)
{
  g_free (self);
}

G_DEFINE_BOXED_TYPE (MusterGoodput, muster_goodput, muster_goodput_copy, muster_goodput_free)
