// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/monitored/coordinator.h"
#include "train/monitored/run_context.h"
#include "train/monitored/scaffold.h"

G_BEGIN_DECLS

/* MusterHook is what a monitored session calls around each run
 * (train/monitored/monitored_session.h): TensorFlow's SessionRunHook. Derive from it and fill in
 * the verbs that are wanted, or make one of a function (muster_hook_new_for_step ()). A hook
 * belongs to one monitored session, whose thread calls it; hooks are called in the order of the
 * list. A verb that fails (FALSE with an error) fails the run, or the recovery, like a failure of
 * the session. */

#define MUSTER_TYPE_HOOK (muster_hook_get_type ())
G_DECLARE_DERIVABLE_TYPE (MusterHook, muster_hook, MUSTER, HOOK, GObject)

struct _MusterHookClass {
  GObjectClass parent;
  /* Once, before the first session: names are checked here. The graph can't be changed any more. */
  gboolean (*begin) (MusterHook *self, MusterScaffold *scaffold, GError **error);
  /* After each session was made: the first, and one more after each recovery. The deadline (on the
   * monitored session's clock) is that of making it; cancellable is (nullable). What waits while
   * training runs takes the coordinator's cancellable instead, which a stop cancels as well. */
  gboolean (*after_create_session) (MusterHook *self, MusterSession *session,
                                    MusterCoordinator *coordinator, gint64 deadline_us,
                                    GCancellable *cancellable, GError **error);
  /* What these two wait for is bounded by muster_run_context_deadline_us () and _cancellable (). */
  gboolean (*before_run) (MusterHook *self, MusterRunContext *context, GError **error);
  gboolean (*after_run) (MusterHook *self, MusterRunContext *context, GError **error);
  /* Once, at a clean end, before the session closes; by the deadline of
   * muster_monitored_session_finish (). */
  gboolean (*end) (MusterHook *self, MusterSession *session, gint64 deadline_us,
                   GCancellable *cancellable, GError **error);
  /* A run has failed for good, or the session ends with an error. end isn't called then, unless the
   * error is that of an end or of a thread. */
  void (*on_error) (MusterHook *self, const GError *error);
  /* After begin: what no other hook may have beside this one, (transfer full) (nullable), in words:
   * "feeds x:0", "saves to DIRECTORY". Two hooks with the same are refused at the start. */
  char **(*claims) (MusterHook *self);
};

/* Claims in one form, however they are spelt: the tensor "x" is "x:0", a directory is absolute. */
char *muster_hook_claim_of_feed (const char *tensor);
char *muster_hook_claim_of_directory (const char *does, const char *directory);

/* A hook that asks each run for tensor (nullable: for nothing) and is then given its value and the
 * global step as the run saw it (-1 without one). FALSE without an error asks for a stop. */
typedef gboolean (*MusterHookStep) (MusterTensor *value, gint64 step, gpointer user_data,
                                    GError **error);
MusterHook *muster_hook_new_for_step (const char *tensor, MusterHookStep after_step,
                                      gpointer user_data, GDestroyNotify destroy);

G_END_DECLS
