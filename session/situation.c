// SPDX-License-Identifier: Apache-2.0
#include "ready/chief_gate.h"
#include "session/session_private.h"

static void
update (MusterOperation *self, const MusterReadiness *readiness)
{
  MusterSituation situation = {.target = muster_master_target (self->master),
                               .readiness = readiness,
                               .failure = self->failure,
                               .diagnosis = self->diagnosis,
                               .server_state = self->server_state,
                               .tasks = (const char *const *)self->missing_tasks,
                               .chief = self->manager->chief,
                               .variables = self->manager->variables,
                               .n_variables = self->manager->n_variables};

  self->has_situation = TRUE;
  if (muster_reasons_update (self->reasons, &situation))
    self->has_news = TRUE;
}

void
muster_operation_receive_reason (MusterOperation *self, const char *why)
{
  if (why == NULL)
    return;
  g_free (self->why);
  self->why = g_strdup (why);
}

/* While the chief decides alone, the ops' words are its: that it is at work is said by its reason,
 * and the ops' own is which variables are missing. */
static char *
why_not (const MusterReadiness *readiness)
{
  if (!muster_chief_decides (readiness->chief))
    return g_strdup (readiness->why_gate != NULL ? readiness->why_gate : readiness->why_not_ready);
  if (readiness->missing == NULL || *readiness->missing == NULL)
    return NULL;
  g_autofree char *names = g_strjoinv (", ", readiness->missing);
  return g_strconcat ("Variables not initialized: ", names, NULL);
}

void
muster_operation_receive_readiness (MusterOperation *self, const MusterReadiness *readiness)
{
  g_clear_error (&self->failure);
  update (self, readiness);
  g_free (self->why);
  self->why = why_not (readiness);
}

/* What the master said before it failed is no longer known. */
void
muster_operation_receive_failure (MusterOperation *self, const GError *failure)
{
  if (failure != self->failure) {
    g_clear_error (&self->failure);
    self->failure = g_error_copy (failure);
  }
  update (self, NULL);
}

void
muster_operation_receive_session (MusterOperation *self)
{
  if (!self->has_situation)
    return;
  g_clear_error (&self->failure);
  update (self, NULL);
}

void
muster_operation_update_reasons (MusterOperation *self)
{
  update (self, NULL);
}

/* One reason as part of a sentence; NULL: it has no part in it, or the ops' own words say it. */
static char *
describe (const MusterOperation *self, const MusterReason *reason)
{
  gint64 for_us = muster_clock_now_us (self->clock) - reason->since_us;

  if (reason->is_well || g_str_equal (reason->component, "variables"))
    return NULL;
  if (g_str_equal (reason->component, "server"))
    return g_strdup (self->diagnosis);
  if (g_str_equal (reason->state, "never-registered"))
    return g_strdup_printf ("%s for '%s'", reason->text, self->manager->model);
  g_autofree char *duration = muster_format_duration (MAX (for_us, 0));
  if (g_str_equal (reason->component, "task"))
    return for_us < MUSTER_SECOND ? g_strdup (reason->text)
                                  : g_strdup_printf ("%s, for %s", reason->text, duration);
  if (!g_str_equal (reason->component, "chief"))
    return g_strdup_printf ("the %s %s", reason->component, reason->text);
  if (g_str_equal (reason->state, "lost"))
    return g_strdup_printf ("the chief was %s, %s ago", reason->text, duration);
  return g_strdup_printf ("the chief is %s, for %s", reason->text, duration);
}

char *
muster_operation_why (const MusterOperation *self)
{
  GPtrArray *reasons = muster_reasons_list (self->reasons);
  g_autoptr (GPtrArray) parts = g_ptr_array_new_with_free_func (g_free);

  for (guint i = 0; i < reasons->len; i++) {
    char *part = describe (self, reasons->pdata[i]);
    if (part != NULL)
      g_ptr_array_add (parts, part);
  }
  if (self->failure != NULL)
    g_ptr_array_add (parts, g_strdup (self->failure->message));
  if (self->failure != NULL && self->why != NULL)
    g_ptr_array_add (parts, g_strdup_printf ("before that: %s", self->why));
  else if (self->why != NULL)
    g_ptr_array_add (parts, g_strdup (self->why));
  if (parts->len == 0)
    return NULL;
  g_ptr_array_add (parts, NULL);

  return g_strjoinv ("; ", (char **)parts->pdata);
}

void
muster_operation_report (MusterOperation *self, const char *message,
                         const MusterReadiness *readiness)
{
  const MusterSessionManager *manager = self->manager;
  static const MusterReadiness nothing;

  if (!self->has_news && g_strcmp0 (message, self->told) == 0)
    return;
  self->has_news = FALSE;
  if (g_strcmp0 (message, self->told) != 0)
    g_info ("%s", message);
  g_free (self->told);
  self->told = g_strdup (message);
  if (manager->progress != NULL)
    manager->progress (message, readiness != NULL ? readiness : &nothing,
                       muster_reasons_list (self->reasons), manager->progress_data);
}
