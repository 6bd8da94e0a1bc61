// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/goodput/goodput_meter.h"
#include "train/monitored/coordinator.h"
#include "train/monitored/run_context.h"
#include "train/monitored/scaffold.h"

G_BEGIN_DECLS

/**
 * MusterHook:
 *
 * A hook is called by a [class@MonitoredSession] around each run, like TensorFlow's
 * `SessionRunHook`. Derive from it and set the functions that you need, in C in the class struct,
 * in Python as methods `do_begin ()`, `do_before_run ()` and so on; or create one from a function
 * ([func@Hook.new_for_step]).
 *
 * A hook belongs to one monitored session, whose thread calls it. Hooks are called in the order of
 * the list. A function that fails (FALSE with an error; in Python an exception) fails the run, or
 * the recovery, like a failure of the session. FALSE without an error is a mistake in the hook,
 * and fails with INTERNAL.
 */
#define MUSTER_TYPE_HOOK (muster_hook_get_type ())
G_DECLARE_DERIVABLE_TYPE (MusterHook, muster_hook, MUSTER, HOOK, GObject)

/**
 * MusterHookClass:
 * @begin: see [vfunc@Hook.begin]
 * @after_create_session: see [vfunc@Hook.after_create_session]
 * @before_run: see [vfunc@Hook.before_run]
 * @after_run: see [vfunc@Hook.after_run]
 * @end: see [vfunc@Hook.end]
 * @on_error: see [vfunc@Hook.on_error]
 * @session_lost: see [vfunc@Hook.session_lost]
 * @claims: see [vfunc@Hook.claims]
 * @measure: see [vfunc@Hook.measure]
 *
 * The functions of a hook; each may be NULL.
 */
struct _MusterHookClass {
  /*< private >*/
  GObjectClass parent;
  /*< public >*/
  gboolean (*begin) (MusterHook *self, MusterScaffold *scaffold, GError **error);
  gboolean (*after_create_session) (MusterHook *self, MusterSession *session,
                                    MusterCoordinator *coordinator, gint64 deadline_us,
                                    GCancellable *cancellable, GError **error);
  gboolean (*before_run) (MusterHook *self, MusterRunContext *context, GError **error);
  gboolean (*after_run) (MusterHook *self, MusterRunContext *context, GError **error);
  gboolean (*end) (MusterHook *self, MusterSession *session, gint64 deadline_us,
                   GCancellable *cancellable, GError **error);
  void (*on_error) (MusterHook *self, const GError *error);
  void (*session_lost) (MusterHook *self);
  char **(*claims) (MusterHook *self);
  void (*measure) (MusterHook *self, MusterGoodputMeter *meter);
};

/**
 * MusterHookClass::begin:
 * @self: the hook
 * @scaffold: the model
 *
 * Called once, before the first session, to check names. The graph can't be changed.
 *
 * Returns: FALSE with an error if the hook can't be used
 */

/**
 * MusterHookClass::after_create_session:
 * @self: the hook
 * @session: the session, which runs without hooks
 * @coordinator: the session's coordinator
 * @deadline_us: for creating the session, on the monitored session's clock
 * @cancellable: (nullable): ends waits of this call
 *
 * Called after each session was created: the first, and one after each recovery. Code that waits
 * during training uses the coordinator's cancellable instead, which a stop cancels too.
 *
 * Returns: FALSE with an error to fail the session
 */

/**
 * MusterHookClass::before_run:
 * @self: the hook
 * @context: the run, valid until the run has ended
 *
 * Called before each run, to add feeds and fetches. Blocking calls use the deadline and the
 * cancellable of @context.
 *
 * Returns: FALSE with an error to fail the run
 */

/**
 * MusterHookClass::after_run:
 * @self: the hook
 * @context: the run, with the fetched values
 *
 * Called after each run that succeeded.
 *
 * Returns: FALSE with an error to fail the run
 */

/**
 * MusterHookClass::end:
 * @self: the hook
 * @session: the session, which runs without hooks
 * @deadline_us: that of [method@MonitoredSession.finish]
 * @cancellable: (nullable): ends waits of this call
 *
 * Called once, at a clean end, before the session closes.
 *
 * Returns: FALSE with an error
 */

/**
 * MusterHookClass::on_error:
 * @self: the hook
 * @error: the failure
 *
 * Called when a run has failed for good, or the session ends with an error. [vfunc@Hook.end] isn't
 * called then, unless the error is from an end function or a thread.
 */

/**
 * MusterHookClass::session_lost:
 * @self: the hook
 *
 * The session is lost and closed. Called before each attempt to create another one.
 */

/**
 * MusterHookClass::claims:
 * @self: the hook
 *
 * Called after begin: what the hook needs exclusively, as texts ("feeds x:0", "saves to
 * DIRECTORY"; see [func@Hook.claim_of_feed]). Two hooks with the same text are refused.
 *
 * Returns: (transfer full) (nullable) (array zero-terminated=1): the texts
 */

/**
 * MusterHookClass::measure:
 * @self: the hook
 * @meter: measures the job's time
 *
 * Called once, before begin. A hook that holds steps up for another use says so
 * ([method@GoodputMeter.enter]).
 */

/**
 * muster_hook_claim_of_feed:
 * @tensor: a tensor, "x" or "x:0"
 *
 * The claim of a hook that feeds a tensor, for [vfunc@Hook.claims]: "x" and "x:0" give the same.
 *
 * Returns: (transfer full): "feeds x:0"
 */
char *muster_hook_claim_of_feed (const char *tensor);

/**
 * muster_hook_claim_of_directory:
 * @does: what the hook does there, such as "saves to"
 * @directory: the directory, which is made absolute
 *
 * The claim of a hook that writes to a directory, for [vfunc@Hook.claims].
 *
 * Returns: (transfer full): "saves to '/d'"
 */
char *muster_hook_claim_of_directory (const char *does, const char *directory);

/**
 * MusterHookStep:
 * @value: (nullable): the fetched value, borrowed; NULL if nothing is fetched
 * @step: the run's global step; -1 if the model has none
 * @user_data: the caller's
 * @error: set it to fail the run
 *
 * The function of [func@Hook.new_for_step], called after each run.
 *
 * Returns: TRUE to continue; FALSE without an error requests a stop
 */
typedef gboolean (*MusterHookStep) (MusterTensor *value, gint64 step, gpointer user_data,
                                    GError **error);

/**
 * muster_hook_new_for_step:
 * @tensor: (nullable): the tensor to fetch in each run; NULL: none
 * @after_step: (scope notified) (closure user_data) (destroy destroy): called after each run
 * @user_data: passed to @after_step
 * @destroy: frees @user_data with the hook
 *
 * A hook that calls a function with a tensor's value and the global step after each run.
 *
 * Returns: (transfer full): the hook
 */
MusterHook *muster_hook_new_for_step (const char *tensor, MusterHookStep after_step,
                                      gpointer user_data, GDestroyNotify destroy);

G_END_DECLS
