// SPDX-License-Identifier: Apache-2.0
#include "base/background.h"
#include "base/fields.h"
#include "graph/step_copy.h"
#include "master/background.h"
#include "master/step_builder_copy.h"

static void
clear_tensor (MusterTensor **tensor)
{
  g_clear_pointer (tensor, muster_tensor_unref);
}

static void
clear_bytes (GBytes **bytes)
{
  g_clear_pointer (bytes, g_bytes_unref);
}

static void
clear_array (GPtrArray **array)
{
  g_clear_pointer (array, g_ptr_array_unref);
}

/* --- masters --- */

#define CREATE(X)                                                                                  \
  X (OBJECT, MusterMaster)                                                                         \
  X (KEPT, MusterGraph *, graph, muster_graph_ref, muster_graph_unref)                             \
  X (KEPT, GBytes *, config, g_bytes_ref, g_bytes_unref)                                           \
  X (VALUE, gint64, deadline_us)
MUSTER_ASYNC (muster_master_create_session, muster_master_create_session, "muster-create",
              MusterSession *, g_clear_object, CREATE)

#define LIST_DEVICES(X)                                                                            \
  X (OBJECT, MusterMaster)                                                                         \
  X (VALUE, gint64, deadline_us)
MUSTER_ASYNC (muster_master_list_devices, muster_master_list_devices, "muster-devices", GPtrArray *,
              clear_array, LIST_DEVICES)

#define RESET(X)                                                                                   \
  X (OBJECT, MusterMaster)                                                                         \
  X (KEPT, const char *const *, containers, MUSTER_KEEP_STRINGS, MUSTER_FREE_STRINGS)              \
  X (VALUE, gint64, deadline_us)
MUSTER_ASYNC (muster_master_reset, muster_master_reset, "muster-reset", gboolean, MUSTER_PLAIN,
              RESET)

/* --- sessions --- */

#define STEP(X, step) X (KEPT, const MusterStep *, step, muster_step_copy, muster_step_free)
#define FETCHED(X, n)                                                                              \
  X (OUTS, MusterTensor *, fetched, n, muster_tensor_unref)                                        \
  X (OUT, GBytes *, metadata, clear_bytes)

#define RUN(X)                                                                                     \
  X (OBJECT, MusterSession)                                                                        \
  STEP (X, step)                                                                                   \
  FETCHED (X, CALL->step != NULL ? CALL->step->n_fetches : 0)
MUSTER_ASYNC (muster_session_run, muster_session_run, "muster-run", gboolean, MUSTER_PLAIN, RUN)

#define RUN_OP(X)                                                                                  \
  X (OBJECT, MusterSession)                                                                        \
  X (KEPT, const char *, op, g_strdup, MUSTER_FREE_STRING)                                         \
  X (VALUE, gint64, deadline_us)
MUSTER_ASYNC (muster_session_run_op, muster_session_run_op, "muster-run", gboolean, MUSTER_PLAIN,
              RUN_OP)

#define FETCH(X)                                                                                   \
  X (OBJECT, MusterSession)                                                                        \
  X (KEPT, const char *, tensor, g_strdup, MUSTER_FREE_STRING)                                     \
  X (VALUE, gint64, deadline_us)
MUSTER_ASYNC (muster_session_fetch, muster_session_fetch, "muster-fetch", MusterTensor *,
              clear_tensor, FETCH)

#define EXTEND(X)                                                                                  \
  X (OBJECT, MusterSession)                                                                        \
  X (KEPT, MusterGraph *, graph, muster_graph_ref, muster_graph_unref)                             \
  X (VALUE, gint64, deadline_us)
MUSTER_ASYNC (muster_session_extend, muster_session_extend, "muster-extend", gboolean, MUSTER_PLAIN,
              EXTEND)

#define CLOSE(X)                                                                                   \
  X (OBJECT, MusterSession)                                                                        \
  X (VALUE, gint64, deadline_us)
MUSTER_ASYNC (muster_session_close, muster_session_close, "muster-close", gboolean, MUSTER_PLAIN,
              CLOSE)

#define SET_UP(X)                                                                                  \
  X (OBJECT, MusterSession)                                                                        \
  STEP (X, step)                                                                                   \
  X (VALUE, gint64, deadline_us)
MUSTER_ASYNC (muster_session_set_up_partial_run, muster_session_set_up_partial_run, "muster-set-up",
              char *, MUSTER_CLEAR_STRING, SET_UP)
MUSTER_ASYNC (muster_session_make_callable, muster_session_make_callable, "muster-callable", gint64,
              MUSTER_PLAIN, SET_UP)

#define RUN_PART(X)                                                                                \
  X (OBJECT, MusterSession)                                                                        \
  X (KEPT, const char *, partial_run, g_strdup, MUSTER_FREE_STRING)                                \
  STEP (X, part)                                                                                   \
  FETCHED (X, CALL->part != NULL ? CALL->part->n_fetches : 0)
MUSTER_ASYNC (muster_session_run_part, muster_session_run_part, "muster-run", gboolean,
              MUSTER_PLAIN, RUN_PART)

static gboolean
run_callable (MusterSession *self, gint64 callable, MusterTensor *const *feeds, gsize n_feeds,
              gsize n_fetches G_GNUC_UNUSED, gint64 deadline_us, MusterTensor **fetched,
              GBytes **metadata, GCancellable *cancellable, GError **error)
{
  return muster_session_run_callable (self, callable, feeds, n_feeds, deadline_us, fetched,
                                      metadata, cancellable, error);
}

#define RUN_CALLABLE(X)                                                                            \
  X (OBJECT, MusterSession)                                                                        \
  X (VALUE, gint64, callable)                                                                      \
  X (ARRAY, MusterTensor *const *, feeds, n_feeds, muster_tensors_copy, muster_tensors_free)       \
  X (VALUE, gsize, n_feeds)                                                                        \
  X (VALUE, gsize, n_fetches)                                                                      \
  X (VALUE, gint64, deadline_us)                                                                   \
  FETCHED (X, CALL->n_fetches)
MUSTER_ASYNC (muster_session_run_callable, run_callable, "muster-run", gboolean, MUSTER_PLAIN,
              RUN_CALLABLE)

#define RELEASE(X)                                                                                 \
  X (OBJECT, MusterSession)                                                                        \
  X (VALUE, gint64, callable)                                                                      \
  X (VALUE, gint64, deadline_us)
MUSTER_ASYNC (muster_session_release_callable, muster_session_release_callable, "muster-callable",
              gboolean, MUSTER_PLAIN, RELEASE)

MusterStepBuilder *
muster_step_builder_copy (MusterStepBuilder *self)
{
  const MusterStep step = muster_step_builder_step (self);
  MusterStepBuilder *copy = muster_step_builder_new ();

  for (gsize i = 0; i < step.n_feeds; i++)
    muster_step_builder_feed (copy, step.feeds[i].name, step.feeds[i].tensor);
  for (gsize i = 0; i < step.n_fetches; i++)
    muster_step_builder_fetch (copy, step.fetches[i]);
  for (gsize i = 0; i < step.n_targets; i++)
    muster_step_builder_target (copy, step.targets[i]);
  return copy;
}

#define RUN_BUILT(X)                                                                               \
  X (SELF, MusterStepBuilder, muster_step_builder_copy, muster_step_builder_unref)                 \
  X (KEPT, MusterSession *, session, g_object_ref, g_object_unref)                                 \
  X (VALUE, gint64, timeout_us)

MUSTER_ASYNC (muster_step_builder_run, muster_step_builder_run, "muster-run", GPtrArray *,
              clear_array, RUN_BUILT)

/* --- watches and leases --- */

#define NEXT(X)                                                                                    \
  X (OBJECT, MusterWatch)                                                                          \
  X (OUT, MusterReadiness, readiness, muster_readiness_clear)
MUSTER_ASYNC (muster_watch_next, muster_watch_next, "muster-watch", gboolean, MUSTER_PLAIN, NEXT)

static const MusterField claim_fields[] = {
    MUSTER_STRING_FIELD (MusterClaim, model),
    MUSTER_STRING_FIELD (MusterClaim, task),
    MUSTER_STRING_FIELD (MusterClaim, ready_op),
};

static const MusterClaim *
copy_claim (const MusterClaim *claim)
{
  return muster_fields_copy (claim, sizeof *claim, claim_fields, G_N_ELEMENTS (claim_fields));
}

static void
free_claim (const MusterClaim *claim)
{
  muster_fields_free ((gpointer)claim, claim_fields, G_N_ELEMENTS (claim_fields));
}

static void
clear_announcement (MusterAnnouncement **announcement)
{
  g_clear_pointer (announcement, muster_announcement_free);
}

#define CLAIM(X)                                                                                   \
  X (OBJECT, MusterSession)                                                                        \
  X (KEPT, const MusterClaim *, claim, copy_claim, free_claim)                                     \
  X (OUT, MusterAnnouncement *, before, clear_announcement)                                        \
  X (VALUE, gint64, deadline_us)
MUSTER_ASYNC (muster_session_claim, muster_session_claim, "muster-claim", MusterLease *,
              g_clear_object, CLAIM)

static void
free_announcement (const MusterAnnouncement *announcement)
{
  muster_announcement_free ((MusterAnnouncement *)announcement);
}

#define ANNOUNCE(X)                                                                                \
  X (OBJECT, MusterLease)                                                                          \
  X (KEPT, const MusterAnnouncement *, announcement, muster_announcement_copy, free_announcement)  \
  X (VALUE, gint64, deadline_us)
MUSTER_ASYNC (muster_lease_announce, muster_lease_announce, "muster-announce", gboolean,
              MUSTER_PLAIN, ANNOUNCE)

#define ANNOUNCE_PHASE(X)                                                                          \
  X (OBJECT, MusterLease)                                                                          \
  X (VALUE, MusterChiefPhase, phase)                                                               \
  X (VALUE, gint64, deadline_us)
MUSTER_ASYNC (muster_lease_announce_phase, muster_lease_announce_phase, "muster-announce", gboolean,
              MUSTER_PLAIN, ANNOUNCE_PHASE)

/* --- memberships --- */

static void
free_join (const MusterJoin *join)
{
  muster_join_free ((MusterJoin *)join);
}

#define JOIN(X)                                                                                    \
  X (OBJECT, MusterMaster)                                                                         \
  X (KEPT, const MusterJoin *, join, muster_join_copy, free_join)                                  \
  X (VALUE, gint64, deadline_us)
MUSTER_ASYNC (muster_master_join, muster_master_join, "muster-join", MusterMembership *,
              g_clear_object, JOIN)

#define WAIT(X)                                                                                    \
  X (OBJECT, MusterMembership)                                                                     \
  X (VALUE, guint64, after_version)                                                                \
  X (VALUE, gint64, deadline_us)
MUSTER_ASYNC (muster_membership_wait, muster_membership_wait, "muster-members", gboolean,
              MUSTER_PLAIN, WAIT)

#define LEAVE(X)                                                                                   \
  X (OBJECT, MusterMembership)                                                                     \
  X (VALUE, gint64, deadline_us)
MUSTER_ASYNC (muster_membership_leave, muster_membership_leave, "muster-leave", gboolean,
              MUSTER_PLAIN, LEAVE)
