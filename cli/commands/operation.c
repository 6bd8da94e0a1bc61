// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/operation.h"

#include "cli/common/cli.h"
#include "cli/output/notify.h"
#include "cli/terminal/trace.h"
#include "train/position/position.h"

void
muster_cli_operation_clear (MusterCliOperation *self)
{
  g_clear_pointer (&self->live, muster_live_end);
  g_clear_object (&self->manager);
  g_clear_object (&self->master);
  g_clear_pointer (&self->scaffold, muster_scaffold_unref);
  muster_session_report_clear (&self->report);
}

/* As a task that trains with fed batches does. */
static gboolean
add_positions (MusterCliOperation *self, GError **error)
{
  if (self->n_tasks == 0)
    return TRUE;
  g_autoptr (MusterScaffold) plain = g_steal_pointer (&self->scaffold);
  const MusterScaffoldOptions same = {.copy_from = plain};
  g_autoptr (MusterMetaGraph) extended =
      muster_position_add (muster_scaffold_meta_graph (plain), self->n_tasks, error);
  if (extended != NULL)
    self->scaffold = muster_scaffold_new_with (extended, &same, error);
  return self->scaffold != NULL;
}

gboolean
muster_cli_operation_begin (MusterCliOperation *self, const MusterCliOptions *options,
                            const char *doing, gint64 recovery_wait_us, gboolean json_lines,
                            GError **error)
{
  self->options = options;
  self->scaffold = muster_cli_scaffold (options, error);
  if (self->scaffold == NULL || !add_positions (self, error))
    return FALSE;
  self->live = muster_live_new (doing, options, json_lines);
  muster_live_begin (self->live, NULL, NULL);
  self->master = muster_cli_master (options, error);
  if (self->master != NULL)
    self->manager = muster_cli_manager (self->scaffold, options, NULL, recovery_wait_us, error);
  if (self->manager == NULL) {
    g_clear_pointer (&self->live, muster_live_end);
    return FALSE;
  }
  muster_session_manager_set_progress (self->manager, muster_live_progress, self->live, NULL);
  self->started_us = muster_clock_now_us (muster_system_clock ());
  return TRUE;
}

void
muster_cli_operation_end (MusterCliOperation *self, const char *command, MusterSession *session,
                          const GError *error, MusterCliResult *result)
{
  *result = (MusterCliResult){
      .options = self->options,
      .report = &self->report,
      .error = error,
      .took_us = muster_clock_now_us (muster_system_clock ()) - self->started_us,
  };
  if (session != NULL)
    muster_session_close_quietly (session);
  g_clear_pointer (&self->live, muster_live_end);
  muster_cli_write_trace (result, command);
  if (error == NULL) {
    muster_notify ("READY=1\nSTATUS=ready");
  } else {
    muster_notify_status (error->message);
    muster_cli_report_failure (result);
  }
}
