// SPDX-License-Identifier: Apache-2.0
/* muster's side of monitored_test.py: one story of a monitored session whose threads fail.
 *
 * monitored_tool META TARGET STORY [OP]: TARGET is "local" or grpc://…. Prints what a run of OP
 * gave, whether it should stop and what came out at the end, as codes; and the run's and the end's
 * words. */
#include "engine/session/local_master.h"
#include "master/remote/target.h"
#include "train/monitored/monitored_session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_US (30 * MUSTER_SECOND)

typedef struct {
  const char *story;
  const char *op; /* (nullable) */
  MusterMonitoredSession *session;
  GError *ran; /* (owned) (nullable) */
  GError *out; /* (owned) (nullable) */
  gboolean should_stop;
} Tale;

/* --- the hook that stops, or fails at its end --- */

#define MUSTER_TYPE_TOOL_HOOK (muster_tool_hook_get_type ())
G_DECLARE_FINAL_TYPE (MusterToolHook, muster_tool_hook, MUSTER, TOOL_HOOK, MusterHook)

struct _MusterToolHook {
  MusterHook parent;
  const char *story;
  int n_losses;
};

G_DEFINE_FINAL_TYPE (MusterToolHook, muster_tool_hook, MUSTER_TYPE_HOOK)

static gboolean
before_run (MusterHook *hook, MusterRunContext *context G_GNUC_UNUSED, GError **error)
{
  MusterToolHook *self = MUSTER_TOOL_HOOK (hook);
  if (!g_str_has_suffix (self->story, "then lost") || self->n_losses++ > 0)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_ABORTED, "of the master");
}

static gboolean
after_run (MusterHook *hook, MusterRunContext *context, GError **error G_GNUC_UNUSED)
{
  if (strcmp (MUSTER_TOOL_HOOK (hook)->story, "stopped by a hook") == 0)
    muster_run_context_request_stop (context);
  return TRUE;
}

static gboolean
end (MusterHook *hook, MusterSession *session G_GNUC_UNUSED, gint64 deadline_us G_GNUC_UNUSED,
     GCancellable *cancellable G_GNUC_UNUSED, GError **error)
{
  if (strstr (MUSTER_TOOL_HOOK (hook)->story, "failing end") == NULL)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_DATA_LOSS, "of the end");
}

static void
muster_tool_hook_class_init (MusterToolHookClass *klass)
{
  MUSTER_HOOK_CLASS (klass)->before_run = before_run;
  MUSTER_HOOK_CLASS (klass)->after_run = after_run;
  MUSTER_HOOK_CLASS (klass)->end = end;
}

static void
muster_tool_hook_init (MusterToolHook *self G_GNUC_UNUSED)
{
}

/* --- the story --- */

static void
report (MusterMonitoredSession *session, MusterError code)
{
  g_autoptr (GError) error = g_error_new_literal (MUSTER_ERROR, (gint)code, "of a thread");
  (void)muster_coordinator_request_stop (muster_monitored_session_coordinator (session), error,
                                         NULL);
}

/* Until the queue runner's thread has failed and its cancel op has closed the queue. */
static gboolean
wait_for_closed_queue (MusterMonitoredSession *session, GError **error)
{
  gint64 deadline_us =
      muster_deadline_after (muster_clock_now_us (muster_system_clock ()), PATIENCE_US);

  for (;;) {
    g_autoptr (MusterTensor) closed = muster_session_fetch (
        muster_monitored_session_session (session), "closed:0", deadline_us, NULL, error);
    if (closed == NULL)
      return FALSE;
    if (*(const guint8 *)muster_tensor_data (closed))
      return TRUE;
    g_thread_yield ();
  }
}

/* What happens before the run; FALSE with an error where it can't be told. */
static gboolean
begin (Tale *tale, GError **error)
{
  if (g_str_has_prefix (tale->story, "queue"))
    return wait_for_closed_queue (tale->session, error);
  if (g_str_has_prefix (tale->story, "lost"))
    report (tale->session, MUSTER_ERROR_ABORTED);
  if (g_str_has_prefix (tale->story, "two errors") || g_str_has_prefix (tale->story, "failed"))
    report (tale->session, MUSTER_ERROR_INTERNAL);
  if (g_str_has_prefix (tale->story, "two errors"))
    report (tale->session, MUSTER_ERROR_DATA_LOSS);
  if (g_str_has_prefix (tale->story, "plain stop"))
    (void)muster_coordinator_request_stop (muster_monitored_session_coordinator (tale->session),
                                           NULL, NULL);
  return TRUE;
}

static void
run (Tale *tale)
{
  const MusterStep step = {.targets = &tale->op, .n_targets = 1};
  if (tale->op == NULL)
    return;
  if (strcmp (tale->story, "stopped by a hook") == 0)
    (void)muster_monitored_session_run (tale->session, &step, NULL, NULL, &tale->ran);
  g_clear_error (&tale->ran);
  (void)muster_monitored_session_run (tale->session, &step, NULL, NULL, &tale->ran);
  tale->should_stop = muster_monitored_session_should_stop (tale->session);
}

static gboolean
tell (Tale *tale, const char *meta, const char *target, GError **error)
{
  g_autoptr (MusterScaffold) scaffold = muster_scaffold_load (meta, error);
  g_autoptr (MusterMaster) master =
      scaffold != NULL ? muster_master_new_for_target (target, error) : NULL;
  g_autoptr (MusterHook) hook = g_object_new (MUSTER_TYPE_TOOL_HOOK, NULL);
  const MusterMonitoredSessionOptions options = {
      .scaffold = scaffold, .master = master, .hooks = &hook, .n_hooks = 1};

  MUSTER_TOOL_HOOK (hook)->story = tale->story;
  tale->session =
      master != NULL ? muster_monitored_session_new (&options, NULL, NULL, error) : NULL;
  if (tale->session == NULL)
    return FALSE;
  gboolean has_begun = begin (tale, error);
  if (has_begun)
    run (tale);
  (void)muster_monitored_session_finish (tale->session, tale->ran, MUSTER_WAIT_FOREVER, &tale->out);
  g_clear_object (&tale->session);
  return has_begun;
}

static void
print (const char *what, const GError *error)
{
  printf ("%s %d %s\n", what, error != NULL ? error->code : 0, error != NULL ? error->message : "");
}

int
main (int argc, char **argv)
{
  g_autoptr (GError) error = NULL;
  if (argc < 4 || argc > 5)
    return 2;
  Tale tale = {.story = argv[3], .op = argc > 4 ? argv[4] : NULL};
  muster_local_master_offer ();
  if (!tell (&tale, argv[1], argv[2], &error)) {
    fprintf (stderr, "%s\n", error->message);
    return 1;
  }
  print ("run", tale.ran);
  printf ("should_stop %d\n", tale.should_stop);
  print ("out", tale.out);
  g_clear_error (&tale.ran);
  g_clear_error (&tale.out);
  return 0;
}
