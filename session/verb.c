// SPDX-License-Identifier: Apache-2.0
#include "session/session_private.h"

/* A reason longer than this (ten thousand missing variables) is cut in an error; the report has it
 * whole. */
#define LONGEST_WHY 2000

void
muster_verb_start (MusterVerb *self, const MusterSessionManager *manager, MusterMaster *master,
                   gint64 timeout_us, GCancellable *cancellable)
{
  gint64 now_us = muster_clock_now_us (manager->clock);

  *self = (MusterVerb){.manager = manager,
                       .master = master,
                       .clock = manager->clock,
                       .cancellable = cancellable,
                       .timeout_us = timeout_us,
                       .deadline_us = muster_deadline_after (now_us, timeout_us)};
  self->call_deadline_us =
      timeout_us > 0 ? self->deadline_us : muster_deadline_after (now_us, MUSTER_ONE_LOOK_LIMIT_US);
  self->report.phases = g_array_new (FALSE, FALSE, sizeof (MusterPhase));
}

void
muster_verb_finish (MusterVerb *self, MusterSessionReport *report)
{
  muster_verb_phase (self, NULL);
  if (report)
    *report = self->report;
  else
    muster_session_report_clear (&self->report);
  g_clear_pointer (&self->why, g_free);
  g_clear_pointer (&self->told, g_free);
}

static void
add_time (MusterVerb *self, const char *name, gint64 duration_us)
{
  GArray *phases = self->report.phases;

  for (guint i = 0; i < phases->len; i++) {
    MusterPhase *phase = &g_array_index (phases, MusterPhase, i);
    if (strcmp (phase->name, name) == 0) {
      phase->duration_us += duration_us;
      return;
    }
  }
  MusterPhase phase = {name, duration_us};
  g_array_append_val (phases, phase);
}

void
muster_verb_phase (MusterVerb *self, const char *name)
{
  gint64 now_us = muster_clock_now_us (self->clock);

  if (self->phase)
    add_time (self, self->phase, now_us - self->phase_started_us);
  self->phase = name;
  self->phase_started_us = now_us;
}

void
muster_verb_rename_phase (MusterVerb *self, const char *name)
{
  self->phase = name;
}

gboolean
muster_verb_is_over (const MusterVerb *self)
{
  return muster_clock_now_us (self->clock) >= self->deadline_us;
}

void
muster_verb_set_why (MusterVerb *self, const char *why)
{
  if (!why || why == self->why)
    return;
  g_free (self->why);
  self->why = g_strdup (why);
}

void
muster_verb_tell (MusterVerb *self, const char *message, const MusterTurn *turn)
{
  const MusterSessionManager *manager = self->manager;
  static const MusterTurn nothing;

  if (g_strcmp0 (message, self->told) == 0)
    return;
  g_free (self->told);
  self->told = g_strdup (message);
  if (manager->progress)
    manager->progress (message, turn ? turn : &nothing, NULL, manager->progress_data);
}

/* "connect 3 ms, create 45 ms, waiting 9.9 s (597 looks, one session)" */
static char *
describe_spending (MusterVerb *self)
{
  const MusterSessionReport *report = &self->report;
  GString *text = g_string_new (NULL);

  for (guint i = 0; i < report->phases->len; i++) {
    const MusterPhase *phase = &g_array_index (report->phases, MusterPhase, i);
    g_autofree char *duration = muster_format_duration (phase->duration_us);
    g_string_append_printf (text, "%s%s %s", i > 0 ? ", " : "", phase->name, duration);
  }
  g_string_append_printf (text, " (%u look%s, ", report->looks, report->looks == 1 ? "" : "s");
  if (report->sessions == 1)
    g_string_append (text, "one session)");
  else
    g_string_append_printf (text, "%u sessions)", report->sessions);

  return g_string_free (text, FALSE);
}

static char *
shorten (const char *why)
{
  if (strlen (why) <= LONGEST_WHY)
    return g_strdup (why);

  const char *end = why + LONGEST_WHY;
  while (((guchar)*end & 0xC0) == 0x80)
    end--;

  return g_strdup_printf ("%.*s…", (int)(end - why), why);
}

static void
set_deadline_error (MusterVerb *self, const char *phase, const GError *failure, GError **error)
{
  g_autofree char *why = shorten (self->why ? self->why : failure->message);
  g_autofree char *spending = describe_spending (self);

  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED,
               "Session was not ready after waiting %" G_GINT64_FORMAT
               " secs. (%s); out of time in '%s'; spent: %s",
               self->timeout_us / MUSTER_SECOND, why, phase ? phase : "start", spending);
}

gboolean
muster_verb_fail (MusterVerb *self, GError *failure, GError **error)
{
  const char *phase = self->phase;

  muster_verb_phase (self, NULL);
  if (muster_error_is (failure, MUSTER_ERROR_DEADLINE_EXCEEDED) && muster_verb_is_over (self)) {
    set_deadline_error (self, phase, failure, error);
    g_error_free (failure);
  } else {
    g_propagate_error (error, failure);
  }

  return FALSE;
}

MusterSession *
muster_verb_create_session (MusterVerb *self, GError **error)
{
  muster_verb_phase (self, "connect");
  MusterSession *session =
      muster_master_create_session (self->master, self->manager->graph, self->manager->config,
                                    self->call_deadline_us, self->cancellable, error);
  if (session) {
    muster_verb_rename_phase (self, "create");
    self->report.sessions++;
  } else {
    g_prefix_error (error, "Creating a session at '%s': ", muster_master_target (self->master));
  }

  return session;
}
