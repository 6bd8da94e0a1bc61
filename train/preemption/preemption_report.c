// SPDX-License-Identifier: Apache-2.0
/* What became of a preemption, as data and as text. */
#include "train/preemption/preemption_private.h"

#include <string.h>

static MusterPreemptionOutcome
outcome_locked (const MusterPreemption *self)
{
  if (self->ended_us == 0)
    return MUSTER_PREEMPTION_UNDER_WAY;
  if (self->is_refused)
    return MUSTER_PREEMPTION_NOT_BEGUN;
  if (self->why)
    return MUSTER_PREEMPTION_GIVEN_UP;
  if (!self->saver || !self->has_hooks)
    return MUSTER_PREEMPTION_NO_SAVE;

  return self->durable && self->durable_us >= self->requested_us ? MUSTER_PREEMPTION_SAVED
                                                                 : MUSTER_PREEMPTION_GIVEN_UP;
}

gboolean
muster_preemption_report (MusterPreemption *self, MusterPreemptionReport *report)
{
  g_return_val_if_fail (self != NULL && report != NULL, FALSE);

  gboolean is_requested = muster_preemption_is_requested (self);

  *report = (MusterPreemptionReport){.needed_us = -1, .needs_us = -1, .durable_step = -1};
  g_mutex_lock (&self->lock);
  report->grace_us = self->grace_us;
  report->durable_step = self->durable_step;
  report->durable = g_strdup (self->durable);
  if (is_requested) {
    report->outcome = outcome_locked (self);
    report->is_drill = self->is_drill;
    report->signal_number = self->signal_number;
    gboolean is_saved = report->outcome == MUSTER_PREEMPTION_SAVED;
    gint64 until_us = is_saved ? self->durable_us : self->ended_us;
    if (until_us == 0)
      until_us = muster_clock_now_us (self->clock);
    report->took_us = until_us - self->requested_us;
    report->needed_us = self->needed_us;
    report->needs_us = self->needs_us;
    report->bytes = self->needed_bytes;
    report->why = g_strdup (self->why);
  }
  g_mutex_unlock (&self->lock);

  return is_requested;
}

void
muster_preemption_report_clear (MusterPreemptionReport *report)
{
  g_return_if_fail (report != NULL);
  g_clear_pointer (&report->durable, g_free);
  g_clear_pointer (&report->why, g_free);
}

/* "preempted (SIGTERM)", "a preemption" */
static char *
subject (const MusterPreemptionReport *report)
{
  if (report->is_drill)
    return g_strdup ("a preemption");
  if (report->signal_number == 0)
    return g_strdup ("preempted");

  return g_strdup_printf ("preempted (%s)", strsignal (report->signal_number));
}

static char *
durable_text (const MusterPreemptionReport *report)
{
  if (report->durable_step < 0)
    return g_strdup ("nothing is durable yet");

  return g_strdup_printf ("the last durable step is %" G_GINT64_FORMAT, report->durable_step);
}

/* What would have been needed. */
static char *
advice (const MusterPreemptionReport *report)
{
  if (report->needs_us <= report->grace_us)
    return g_strdup ("");
  g_autofree char *needs = muster_format_duration (report->needs_us);

  return g_strdup_printf ("; a grace of %s would have been needed", needs);
}

static char *
saved_text (const MusterPreemptionReport *report, const char *who)
{
  g_autofree char *took = muster_format_duration (report->took_us);
  g_autofree char *grace = muster_format_duration (report->grace_us);
  gint64 margin_us = report->grace_us - report->took_us;
  g_autofree char *margin = muster_format_duration (margin_us < 0 ? -margin_us : margin_us);
  const char *sign = margin_us < 0 ? "too long" : "to spare";

  if (report->is_drill)
    return g_strdup_printf ("%s would take %s of the %s grace: %s %s", who, took, grace, margin,
                            sign);

  return g_strdup_printf ("%s: step %" G_GINT64_FORMAT " was durable after %s of the %s grace", who,
                          report->durable_step, took, grace);
}

char *
muster_preemption_report_text (const MusterPreemptionReport *report)
{
  g_return_val_if_fail (report != NULL, NULL);

  g_autofree char *who = subject (report);
  g_autofree char *durable = durable_text (report);
  g_autofree char *further = advice (report);
  const char *why = report->why ? report->why : "it ended before it had saved";

  switch (report->outcome) {
  case MUSTER_PREEMPTION_SAVED:
    return saved_text (report, who);
  case MUSTER_PREEMPTION_NOT_BEGUN:
    return g_strdup_printf ("%s%s no save was begun: %s%s; %s", who,
                            report->is_drill ? " would end without one:" : ":", why, further,
                            durable);
  case MUSTER_PREEMPTION_GIVEN_UP:
    return g_strdup_printf ("%s%s %s%s; %s", who,
                            report->is_drill ? " would end without a save:" : ": not saved:", why,
                            further, durable);
  case MUSTER_PREEMPTION_NO_SAVE:
    return g_strdup_printf ("%s: there was nothing to save", who);
  case MUSTER_PREEMPTION_UNDER_WAY:
    return g_strdup_printf ("%s: it is under way", who);
  case MUSTER_PREEMPTION_NOT_ASKED:
  default:
    return g_strdup ("not preempted");
  }
}

gboolean
muster_preemption_explains (MusterPreemption *self, const GError *failure)
{
  g_return_val_if_fail (self != NULL, FALSE);

  if (!muster_preemption_is_requested (self))
    return FALSE;

  return !failure || g_error_matches (failure, G_IO_ERROR, G_IO_ERROR_CANCELLED) ||
         muster_error_is (failure, MUSTER_ERROR_CANCELLED) ||
         muster_error_is (failure, MUSTER_ERROR_DEADLINE_EXCEEDED) ||
         muster_error_is (failure, MUSTER_ERROR_UNAVAILABLE) ||
         muster_error_is (failure, MUSTER_ERROR_ABORTED);
}
