// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/goodput/goodput_meter.h"
#include "train/monitored/coordinator.h"
#include "train/monitored/run_context.h"
#include "train/monitored/scaffold.h"

G_BEGIN_DECLS

/* MusterHook is called by a monitored session around each run
 * (train/monitored/monitored_session.h), like TensorFlow's SessionRunHook. Derive from it and set
 * the functions that you need, or create one from a function (muster_hook_new_for_step ()). A hook
 * belongs to one monitored session, whose thread calls it; hooks are called in the order of the
 * list. A function that fails (FALSE with an error) fails the run, or the recovery, like a failure
 * of the session. */

#define MUSTER_TYPE_HOOK (muster_hook_get_type ())
G_DECLARE_DERIVABLE_TYPE (MusterHook, muster_hook, MUSTER, HOOK, GObject)

struct _MusterHookClass {
  GObjectClass parent;
  /* Called once, before the first session, to check names. The graph can't be changed. */
  gboolean (*begin) (MusterHook *self, MusterScaffold *scaffold, GError **error);
  /* Called after each session was created: the first, and one after each recovery. The deadline (on
   * the monitored session's clock) is for creating it; cancellable is (nullable). Code that waits
   * during training uses the coordinator's cancellable instead, which a stop cancels too. */
  gboolean (*after_create_session) (MusterHook *self, MusterSession *session,
                                    MusterCoordinator *coordinator, gint64 deadline_us,
                                    GCancellable *cancellable, GError **error);
  /* Called around each run. Blocking calls use muster_run_context_deadline_us () and
   * muster_run_context_cancellable (). */
  gboolean (*before_run) (MusterHook *self, MusterRunContext *context, GError **error);
  gboolean (*after_run) (MusterHook *self, MusterRunContext *context, GError **error);
  /* Called once, at a clean end, before the session closes. The deadline is that of
   * muster_monitored_session_finish (). */
  gboolean (*end) (MusterHook *self, MusterSession *session, gint64 deadline_us,
                   GCancellable *cancellable, GError **error);
  /* Called when a run has failed for good, or the session ends with an error. end isn't called
   * then, unless the error is from an end function or a thread. */
  void (*on_error) (MusterHook *self, const GError *error);
  /* The session is lost and closed; called before each attempt to create another one. */
  void (*session_lost) (MusterHook *self);
  /* After begin: what the hook needs exclusively, (transfer full) (nullable), as texts: "feeds
   * x:0", "saves to DIRECTORY". Two hooks with the same text are refused. */
  char **(*claims) (MusterHook *self);
  /* Called once, before begin: what measures the job's time. A hook that holds steps up for another
   * use says so (muster_goodput_meter_enter ()). */
  void (*measure) (MusterHook *self, MusterGoodputMeter *meter);
};

/* Normalised claims: the tensor "x" is "x:0", a directory is absolute. */
char *muster_hook_claim_of_feed (const char *tensor);
char *muster_hook_claim_of_directory (const char *does, const char *directory);

/* A hook that fetches tensor (nullable: nothing) in each run and calls after_step with its value
 * and the run's global step (-1 without one). FALSE without an error requests a stop. */
typedef gboolean (*MusterHookStep) (MusterTensor *value, gint64 step, gpointer user_data,
                                    GError **error);
MusterHook *muster_hook_new_for_step (const char *tensor, MusterHookStep after_step,
                                      gpointer user_data, GDestroyNotify destroy);

G_END_DECLS
