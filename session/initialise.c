// SPDX-License-Identifier: Apache-2.0
#include "ready/readiness.h"
#include "session/session_private.h"

gboolean
muster_prepare_options_has_init_op (const MusterPrepareOptions *options)
{
  return options->init_op || (options->init_ops && *options->init_ops);
}

static char *
name_of_ops (const char *const *ops, gsize n)
{
  return n == 1 ? g_strdup (*ops) : g_strjoinv (", ", (char **)ops);
}

static gboolean
run_init_ops (MusterVerb *self, MusterSession *session, const MusterPrepareOptions *options,
              GError **error)
{
  gboolean is_one = options->init_op != NULL;
  const char *const *ops = is_one ? &options->init_op : options->init_ops;
  gsize n = is_one ? 1 : g_strv_length ((char **)ops);
  MusterStep step = {.feeds = options->init_feeds,
                     .n_feeds = options->n_init_feeds,
                     .targets = ops,
                     .n_targets = n,
                     .deadline_us = self->call_deadline_us};

  if (muster_session_run (session, &step, NULL, NULL, self->cancellable, error))
    return TRUE;
  g_autofree char *name = name_of_ops (ops, n);
  g_prefix_error (error, "Running init_op '%s': ", name);

  return FALSE;
}

static gboolean
run_init_func (MusterVerb *self, MusterSession *session, const MusterPrepareOptions *options,
               GError **error)
{
  g_autoptr (GError) failure = NULL;

  if (options->init_func (session, self->call_deadline_us, self->cancellable,
                          options->init_func_data, &failure))
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
  if (muster_prepare_options_has_init_op (options) && !run_init_ops (self, session, options, error))
    return FALSE;

  return muster_verb_check_lease (self, error) &&
         (!options->init_func || run_init_func (self, session, options, error));
}

gboolean
muster_verb_run_local_init (MusterVerb *self, MusterSession *session, GError **error)
{
  const MusterSessionManager *manager = self->manager;
  MusterStep step = {.targets = (const char *const *)manager->local_init_ops,
                     .n_targets = g_strv_length (manager->local_init_ops),
                     .options = manager->local_init_run_options,
                     .deadline_us = self->call_deadline_us};

  muster_verb_phase (self, "local init");
  g_info ("Running local_init_op.");
  if (!muster_session_run (session, &step, NULL, NULL, self->cancellable, error)) {
    g_prefix_error (error, "Running local_init_op '%s': ", manager->local_init_name);
    return FALSE;
  }
  g_info ("Done running local_init_op.");

  return TRUE;
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
  muster_verb_hear_why (self, *why);

  return TRUE;
}

gboolean
muster_verb_try_local_init (MusterVerb *self, MusterSession *session, char **why, GError **error)
{
  *why = NULL;
  if (!self->manager->local_init_ops)
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
