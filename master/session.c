// SPDX-License-Identifier: Apache-2.0
/* The public functions of a session. Each checks its arguments and the deadline, then calls the
 * implementation of the session's class: the engine's or a remote one's. */
#include "master/session.h"

#include "base/require_private.h"
#include "graph/missing_ops_private.h"
#include "graph/run_options_private.h"
#include "master/coordinated_private.h"
#include "master/session_private.h"
#include "master/step_check_private.h"

#define QUIET_CLOSE_US (5 * MUSTER_SECOND)

typedef struct {
  char *handle;       /* (owned) (nullable) until set_identity */
  MusterGraph *graph; /* (owned) (nullable) */
  char **lacks;       /* (owned) (nullable) */
  gboolean is_coordinated;
} MusterSessionPrivate;

G_DEFINE_ABSTRACT_TYPE_WITH_PRIVATE (MusterSession, muster_session, G_TYPE_OBJECT)

G_DEFINE_ABSTRACT_TYPE (MusterWatch, muster_watch, G_TYPE_OBJECT)

void
muster_readiness_clear (MusterReadiness *self)
{
  g_return_if_fail (self != NULL);
  g_clear_pointer (&self->why_gate, g_free);
  g_clear_pointer (&self->why_not_ready, g_free);
  g_clear_pointer (&self->missing, g_free);
  g_clear_pointer (&self->chief, muster_announcement_free);
  g_clear_pointer (&self->graph_difference, g_free);
  g_clear_pointer (&self->coordinator_failure, g_free);
}

gboolean
muster_watch_next (MusterWatch *self, MusterReadiness *readiness, GCancellable *cancellable,
                   GError **error)
{
  muster_require (error, FALSE, self, readiness);
  return muster_watch_next_until (self, readiness, MUSTER_WAIT_FOREVER, cancellable, error);
}

gboolean
muster_watch_next_until (MusterWatch *self, MusterReadiness *readiness, gint64 until_us,
                         GCancellable *cancellable, GError **error)
{
  return MUSTER_WATCH_GET_CLASS (self)->next (self, readiness, until_us, cancellable, error);
}

static MusterSessionPrivate *
private_of (MusterSession *self)
{
  return muster_session_get_instance_private (self);
}

gboolean
muster_session_ran_out (const GError *failure, gint64 deadline_us, gint64 now_us)
{
  /* gRPC counts in milliseconds, so the call may end slightly early. */
  return muster_error_is (failure, MUSTER_ERROR_DEADLINE_EXCEEDED) &&
         muster_deadline_remaining (deadline_us, now_us) <=
             MUSTER_DEADLINE_MARGIN_US + MUSTER_MILLISECOND;
}

const char *
muster_session_handle (MusterSession *self)
{
  g_return_val_if_fail (MUSTER_IS_SESSION (self), NULL);
  return private_of (self)->handle;
}

MusterGraph *
muster_session_graph (MusterSession *self)
{
  g_return_val_if_fail (MUSTER_IS_SESSION (self), NULL);
  return private_of (self)->graph;
}

/* Copies the step with its one deadline; FALSE for a step that can't be run. */
static gboolean
bound_step (const char *function, const MusterStep *step, MusterStep *bounded, GError **error)
{
  if (!muster_step_check (function, step, TRUE, error))
    return FALSE;
  *bounded = *step;
  if (step->deadline_us == 0)
    bounded->deadline_us = MUSTER_WAIT_FOREVER;
  if (!muster_deadline_check (bounded->deadline_us, error))
    return FALSE;
  return G_LIKELY (step->options == NULL) ||
         muster_run_options_bound (step->options, &bounded->deadline_us, error);
}

gboolean
muster_session_run (MusterSession *self, const MusterStep *step, MusterTensor **fetched,
                    GBytes **metadata, GCancellable *cancellable, GError **error)
{
  MusterStep bounded;
  muster_require (error, FALSE, self, step);
  muster_require_array (error, FALSE, fetched, step->n_fetches);
  return bound_step (G_STRFUNC, step, &bounded, error) &&
         MUSTER_SESSION_GET_CLASS (self)->run (self, &bounded, fetched, metadata, cancellable,
                                               error);
}

static gboolean
refuse_parts (GError **error)
{
  return muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED,
                      "this kind of session can't run a step in parts; run the entire step");
}

char *
muster_session_set_up_partial_run (MusterSession *self, const MusterStep *step, gint64 deadline_us,
                                   GCancellable *cancellable, GError **error)
{
  muster_require (error, NULL, self, step);
  if (!muster_step_check (G_STRFUNC, step, FALSE, error))
    return NULL;
  if (!muster_deadline_check (deadline_us, error))
    return NULL;
  if (MUSTER_SESSION_GET_CLASS (self)->set_up_partial_run != NULL)
    return MUSTER_SESSION_GET_CLASS (self)->set_up_partial_run (self, step, deadline_us,
                                                                cancellable, error);
  refuse_parts (error);
  return NULL;
}

gboolean
muster_session_run_part (MusterSession *self, const char *partial_run, const MusterStep *part,
                         MusterTensor **fetched, GBytes **metadata, GCancellable *cancellable,
                         GError **error)
{
  MusterStep bounded;
  muster_require (error, FALSE, self, partial_run, part);
  muster_require_array (error, FALSE, fetched, part->n_fetches);
  if (!bound_step (G_STRFUNC, part, &bounded, error))
    return FALSE;
  if (MUSTER_SESSION_GET_CLASS (self)->run_part == NULL)
    return refuse_parts (error);
  return MUSTER_SESSION_GET_CLASS (self)->run_part (self, partial_run, &bounded, fetched, metadata,
                                                    cancellable, error);
}

gboolean
muster_session_is_here (MusterSession *self)
{
  g_return_val_if_fail (MUSTER_IS_SESSION (self), FALSE);
  return MUSTER_SESSION_GET_CLASS (self)->is_here;
}

/* Converts a deadline to that of a step, in which 0 means none. */
static gint64
in_step (gint64 deadline_us)
{
  return deadline_us == 0 ? muster_clock_now_us (muster_system_clock ()) : deadline_us;
}

gboolean
muster_session_run_op (MusterSession *self, const char *op, gint64 deadline_us,
                       GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self, op);
  MusterStep step = {.targets = &op, .n_targets = 1, .deadline_us = in_step (deadline_us)};
  return muster_session_run (self, &step, NULL, NULL, cancellable, error);
}

gboolean
muster_session_run_op_fed (MusterSession *self, const char *op, const char *name,
                           MusterTensor *value, gint64 deadline_us, GCancellable *cancellable,
                           GError **error)
{
  const MusterFeed feed = {name, value};
  const MusterStep step = {
      .feeds = &feed, .n_feeds = 1, .targets = &op, .n_targets = 1, .deadline_us = deadline_us};
  return muster_session_run (self, &step, NULL, NULL, cancellable, error);
}

MusterTensor *
muster_session_fetch (MusterSession *self, const char *tensor, gint64 deadline_us,
                      GCancellable *cancellable, GError **error)
{
  muster_require (error, NULL, self, tensor);
  MusterStep step = {.fetches = &tensor, .n_fetches = 1, .deadline_us = in_step (deadline_us)};
  MusterTensor *fetched = NULL;
  return muster_session_run (self, &step, &fetched, NULL, cancellable, error) ? fetched : NULL;
}

gboolean
muster_session_extend (MusterSession *self, MusterGraph *graph, gint64 deadline_us,
                       GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self, graph);
  if (!muster_deadline_check (deadline_us, error))
    return FALSE;
  if (MUSTER_SESSION_GET_CLASS (self)->extend != NULL)
    return MUSTER_SESSION_GET_CLASS (self)->extend (self, graph, deadline_us, cancellable, error);
  return muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED,
                      "This kind of session takes no more nodes");
}

gboolean
muster_session_close (MusterSession *self, gint64 deadline_us, GCancellable *cancellable,
                      GError **error)
{
  muster_require (error, FALSE, self);
  if (!muster_deadline_check (deadline_us, error))
    return FALSE;
  return MUSTER_SESSION_GET_CLASS (self)->close (self, deadline_us, cancellable, error);
}

void
muster_session_close_quietly (MusterSession *self)
{
  muster_session_close_quietly_within (self, QUIET_CLOSE_US);
}

void
muster_session_close_quietly_within (MusterSession *self, gint64 timeout_us)
{
  if (self == NULL)
    return;
  gint64 now_us = muster_clock_now_us (muster_system_clock ());
  /* The session is given up: the result doesn't matter to the caller. */
  (void)muster_session_close (self, muster_deadline_after (now_us, timeout_us), NULL, NULL);
}

void
muster_session_give_up (MusterSession *self)
{
  if (self != NULL && MUSTER_SESSION_GET_CLASS (self)->give_up != NULL)
    MUSTER_SESSION_GET_CLASS (self)->give_up (self);
  else
    muster_session_close_quietly (self);
}

gint64
muster_session_make_callable (MusterSession *self, const MusterStep *step, gint64 deadline_us,
                              GCancellable *cancellable, GError **error)
{
  muster_require (error, 0, self, step);
  if (!muster_step_check (G_STRFUNC, step, FALSE, error))
    return 0;
  if (!muster_deadline_check (deadline_us, error))
    return 0;
  return MUSTER_SESSION_GET_CLASS (self)->make_callable (self, step, deadline_us, cancellable,
                                                         error);
}

gboolean
muster_session_run_callable (MusterSession *self, gint64 callable, MusterTensor *const *feeds,
                             gsize n_feeds, gint64 deadline_us, MusterTensor **fetched,
                             GBytes **metadata, GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self);
  muster_require_array (error, FALSE, feeds, n_feeds);
  for (gsize i = 0; i < n_feeds; i++)
    muster_require (error, FALSE, feeds[i]);
  if (!muster_deadline_check (deadline_us, error))
    return FALSE;
  return MUSTER_SESSION_GET_CLASS (self)->run_callable (
      self, callable, feeds, n_feeds, in_step (deadline_us), fetched, metadata, cancellable, error);
}

gboolean
muster_session_release_callable (MusterSession *self, gint64 callable, gint64 deadline_us,
                                 GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self);
  if (!muster_deadline_check (deadline_us, error))
    return FALSE;
  return MUSTER_SESSION_GET_CLASS (self)->release_callable (self, callable, deadline_us,
                                                            cancellable, error);
}

MusterWatch *
muster_session_watch (MusterSession *self, const MusterWatchFor *what, gint64 deadline_us,
                      GError **error)
{
  muster_require (error, NULL, self, what);
  if (!muster_deadline_check (deadline_us, error))
    return NULL;
  MusterSessionClass *klass = MUSTER_SESSION_GET_CLASS (self);
  if (klass->watch != NULL)
    return klass->watch (self, what, deadline_us, error);
  muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED, "this kind of master can't push readiness");
  return NULL;
}

void
muster_session_set_identity (MusterSession *self, const char *handle, MusterGraph *graph)
{
  g_return_if_fail (self != NULL && handle != NULL);
  MusterSessionPrivate *private = private_of (self);
  g_return_if_fail (private->handle == NULL);
  private->handle = g_strdup (handle);
  private->graph = graph != NULL ? muster_graph_ref (graph) : NULL;
}

gboolean
muster_session_is_coordinated (MusterSession *self)
{
  return private_of (self)->is_coordinated;
}

void
muster_session_set_coordinated (MusterSession *self)
{
  private_of (self)->is_coordinated = TRUE;
}

const char *const *
muster_session_lacks (MusterSession *self)
{
  g_return_val_if_fail (MUSTER_IS_SESSION (self), NULL);
  return (const char *const *)private_of (self)->lacks;
}

void
muster_session_set_lacks (MusterSession *self, const char *const *ops)
{
  g_return_if_fail (MUSTER_IS_SESSION (self));
  MusterSessionPrivate *private = private_of (self);
  g_return_if_fail (private->lacks == NULL);
  private->lacks = ops != NULL && *ops != NULL ? g_strdupv ((char **)ops) : NULL;
}

gboolean
muster_session_check_needs (MusterSession *self, MusterGraph *graph, const char *const *names,
                            const char *const *feeds, GError **error)
{
  muster_require (error, FALSE, self, graph, names);
  const char *const *lacks = muster_session_lacks (self);
  return lacks == NULL || (muster_graph_parse (graph, error) &&
                           muster_graph_check_ops (graph, names, feeds, lacks,
                                                   muster_session_is_here (self), error));
}

static void
muster_session_finalize (GObject *object)
{
  MusterSessionPrivate *private = private_of (MUSTER_SESSION (object));
  g_free (private->handle);
  g_strfreev (private->lacks);
  g_clear_pointer (&private->graph, muster_graph_unref);
  G_OBJECT_CLASS (muster_session_parent_class)->finalize (object);
}

static void
muster_session_class_init (MusterSessionClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = muster_session_finalize;
}

static void
muster_session_init (MusterSession *self G_GNUC_UNUSED)
{
}

static void
muster_watch_class_init (MusterWatchClass *klass G_GNUC_UNUSED)
{
}

static void
muster_watch_init (MusterWatch *self G_GNUC_UNUSED)
{
}
