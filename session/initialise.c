// SPDX-License-Identifier: Apache-2.0
#include "ready/readiness.h"
#include "session/session_private.h"

static gboolean
run_init_op (MusterVerb *self, MusterSession *session, const MusterPrepareOptions *options,
             GError **error)
{
  MusterStep step = {.feeds = options->init_feeds,
                     .n_feeds = options->n_init_feeds,
                     .targets = &options->init_op,
                     .n_targets = 1,
                     .deadline_us = self->call_deadline_us};

  if (muster_session_run (session, &step, NULL, NULL, self->cancellable, error))
    return TRUE;
  g_prefix_error (error, "Running init_op '%s': ", options->init_op);

  return FALSE;
}

static gboolean
run_init_func (MusterSession *session, const MusterPrepareOptions *options, GError **error)
{
  g_autoptr (GError) failure = NULL;

  if (options->init_func (session, options->init_func_data, &failure))
    return TRUE;
  if (!failure)
    g_set_error_literal (&failure, MUSTER_ERROR, MUSTER_ERROR_UNKNOWN, "it didn't say why");
  g_propagate_prefixed_error (error, g_steal_pointer (&failure), "The init function failed: ");

  return FALSE;
}

gboolean
muster_verb_init (MusterVerb *self, MusterSession *session, const MusterPrepareOptions *options,
                  GError **error)
{
  muster_verb_phase (self, "init");
  if (options->init_op && !run_init_op (self, session, options, error))
    return FALSE;

  return !options->init_func || run_init_func (session, options, error);
}

gboolean
muster_verb_run_local_init (MusterVerb *self, MusterSession *session, GError **error)
{
  const char *op = self->manager->local_init_op;
  MusterStep step = {.targets = &op,
                     .n_targets = 1,
                     .options = self->manager->local_init_run_options,
                     .deadline_us = self->call_deadline_us};

  muster_verb_phase (self, "local init");
  if (muster_session_run (session, &step, NULL, NULL, self->cancellable, error))
    return TRUE;
  g_prefix_error (error, "Running local_init_op '%s': ", op);

  return FALSE;
}

static gboolean
probe (MusterVerb *self, MusterSession *session, const char *op, const char *what, char **why,
       GError **error)
{
  g_auto (MusterReadiness) readiness = {0};

  if (op)
    self->report.looks++;
  if (!muster_readiness_probe (session, op, self->call_deadline_us, self->cancellable, &readiness,
                               error)) {
    g_prefix_error (error, "%s: ", what);
    return FALSE;
  }
  *why = readiness.is_ready ? NULL : g_steal_pointer (&readiness.why_not);
  muster_verb_set_why (self, *why);

  return TRUE;
}

gboolean
muster_verb_try_local_init (MusterVerb *self, MusterSession *session, char **why, GError **error)
{
  *why = NULL;
  if (!self->manager->local_init_op)
    return TRUE;

  muster_verb_phase (self, "local init");
  if (!probe (self, session, self->manager->ready_for_local_init_op,
              "Model not ready for local init", why, error))
    return FALSE;

  return *why || muster_verb_run_local_init (self, session, error);
}

gboolean
muster_verb_check_ready (MusterVerb *self, MusterSession *session, char **why, GError **error)
{
  *why = NULL;
  if (!self->manager->ready_op)
    return TRUE;

  muster_verb_phase (self, "ready");

  return probe (self, session, self->manager->ready_op, "Model not ready", why, error);
}
