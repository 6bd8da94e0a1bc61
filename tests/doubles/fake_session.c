// SPDX-License-Identifier: Apache-2.0
#include "ready/readiness_private.h"
#include "tests/doubles/fake_session_private.h"

#define MUSTER_TYPE_FAKE_SESSION (muster_fake_session_get_type ())
G_DECLARE_FINAL_TYPE (MusterFakeSession, muster_fake_session, MUSTER, FAKE_SESSION, MusterSession)

#define MUSTER_TYPE_FAKE_WATCH (muster_fake_watch_get_type ())
G_DECLARE_FINAL_TYPE (MusterFakeWatch, muster_fake_watch, MUSTER, FAKE_WATCH, MusterWatch)

struct _MusterFakeSession {
  MusterSession parent;
  MusterFakeMaster *master; /* (owned) */
  guint life;
  gint ended; /* atomic */
};

struct _MusterFakeWatch {
  MusterWatch parent;
  MusterFakeSession *session; /* (owned) */
  char *gate_op;              /* (owned) (nullable) */
  char *ready_op;             /* (owned) (nullable) */
  gboolean names_model;
  gint64 deadline_us;
  gboolean told;
  MusterReadiness last;
};

G_DEFINE_FINAL_TYPE (MusterFakeSession, muster_fake_session, MUSTER_TYPE_SESSION)
G_DEFINE_FINAL_TYPE (MusterFakeWatch, muster_fake_watch, MUSTER_TYPE_WATCH)

MusterSession *
muster_fake_session_new (MusterFakeMaster *master, guint life)
{
  MusterFakeSession *self = g_object_new (MUSTER_TYPE_FAKE_SESSION, NULL);
  self->master = g_object_ref (master);
  self->life = life;
  return MUSTER_SESSION (self);
}

static gboolean
check_alive (MusterFakeSession *self, GError **error)
{
  const char *handle = muster_session_handle (MUSTER_SESSION (self));
  if (muster_fake_master_is_alive (self->master, self->life) && !g_atomic_int_get (&self->ended) &&
      !muster_fake_chief_registry_has_ended (muster_fake_master_registry (self->master), handle))
    return TRUE;
  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED,
               "Session %s is not found. Possibly, this master has restarted.", handle);
  return FALSE;
}

static gboolean
run_op (MusterFakeSession *self, const char *name, const MusterStep *step, MusterTensor **value,
        GCancellable *cancellable, GError **error)
{
  g_autofree char *op = muster_fake_node_of (name);

  if (!muster_fake_master_ask (self->master, op, "run %s", step->deadline_us, cancellable, error) ||
      !check_alive (self, error))
    return FALSE;
  muster_fake_master_keep_step (self->master, op, step);
  return muster_fake_master_compute (self->master, op, step, value, error);
}

static gboolean
fetch (MusterFakeSession *self, const char *name, const MusterStep *step, MusterTensor **value,
       GCancellable *cancellable, GError **error)
{
  if (!run_op (self, name, step, value, cancellable, error))
    return FALSE;
  if (*value == NULL)
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                 "FetchOutputs %s: output index too large, must be < 0", name);
  return *value != NULL;
}

static gboolean
muster_fake_session_run (MusterSession *session, const MusterStep *step, MusterTensor **fetched,
                         GBytes **metadata, GCancellable *cancellable, GError **error)
{
  MusterFakeSession *self = MUSTER_FAKE_SESSION (session);
  g_autoptr (GPtrArray) values =
      g_ptr_array_new_with_free_func ((GDestroyNotify)muster_tensor_unref);

  if (step->n_targets == 0 && step->n_fetches == 0 && !check_alive (self, error))
    return FALSE;
  for (gsize i = 0; i < step->n_targets; i++) {
    g_autoptr (MusterTensor) dropped = NULL;
    if (!run_op (self, step->targets[i], step, &dropped, cancellable, error))
      return FALSE;
  }
  for (gsize i = 0; i < step->n_fetches; i++) {
    MusterTensor *value = NULL;
    if (!fetch (self, step->fetches[i], step, &value, cancellable, error))
      return FALSE;
    g_ptr_array_add (values, value);
  }

  for (gsize i = 0; i < step->n_fetches; i++)
    fetched[i] = muster_tensor_ref (values->pdata[i]);
  if (metadata != NULL)
    *metadata = NULL;
  return TRUE;
}

static void
end (MusterFakeSession *self)
{
  if (g_atomic_int_compare_and_exchange (&self->ended, 0, 1))
    muster_fake_master_session_ended (self->master, self->life);
}

/* A close's deadline may be on the machine's clock (a quiet close), so it isn't looked at, and a
 * close that hangs fails at once. */
static gboolean
muster_fake_session_close (MusterSession *session, gint64 deadline_us G_GNUC_UNUSED,
                           GCancellable *cancellable, GError **error)
{
  MusterFakeSession *self = MUSTER_FAKE_SESSION (session);
  if (g_atomic_int_get (&self->ended))
    return TRUE;
  gboolean done = muster_fake_master_ask (
      self->master, "close", "%s",
      muster_clock_now_us (MUSTER_CLOCK (muster_fake_master_clock (self->master))), cancellable,
      error);
  end (self);
  return done;
}

static MusterWatch *
muster_fake_session_watch (MusterSession *session, const MusterWatchFor *what, gint64 deadline_us,
                           GError **error)
{
  MusterFakeSession *self = MUSTER_FAKE_SESSION (session);
  if (!muster_fake_master_is_watchable (self->master)) {
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_UNIMPLEMENTED, "No watch here");
    return NULL;
  }
  MusterFakeWatch *watch = g_object_new (MUSTER_TYPE_FAKE_WATCH, NULL);
  watch->session = g_object_ref (self);
  watch->gate_op = g_strdup (what->ready_for_local_init_op);
  watch->ready_op = g_strdup (what->ready_op);
  watch->names_model = what->model != NULL;
  watch->deadline_us = deadline_us;
  return MUSTER_WATCH (watch);
}

static MusterLease *
muster_fake_session_claim (MusterSession *session, const MusterClaim *claim,
                           MusterAnnouncement **before, gint64 deadline_us,
                           GCancellable *cancellable, GError **error)
{
  MusterFakeSession *self = MUSTER_FAKE_SESSION (session);
  if (!check_alive (self, error))
    return NULL;
  return muster_fake_chief_registry_claim (self->master, muster_session_handle (session), claim,
                                           before, deadline_us, cancellable, error);
}

static gboolean
judge (MusterFakeWatch *self, const char *op, gboolean *is_ready, char **why, char ***missing,
       GError **error)
{
  g_autoptr (MusterTensor) value = NULL;
  g_autoptr (GError) failure = NULL;
  g_auto (MusterReadyOpResult) readiness = {0};
  *is_ready = TRUE;
  if (op == NULL)
    return TRUE;
  muster_fake_master_compute (self->session->master, op, NULL, &value, &failure);
  if (!muster_ready_op_judge (op, value, failure, &readiness, error))
    return FALSE;
  *is_ready = readiness.is_ready;
  *why = g_steal_pointer (&readiness.why_not);
  g_free (*missing);
  *missing = g_steal_pointer (&readiness.missing);
  return TRUE;
}

static gboolean
look (MusterFakeWatch *self, MusterReadiness *readiness, GError **error)
{
  if (!check_alive (self->session, error) ||
      !judge (self, self->gate_op, &readiness->gate_open, &readiness->why_gate, &readiness->missing,
              error))
    return FALSE;
  if (readiness->gate_open && !judge (self, self->ready_op, &readiness->is_ready,
                                      &readiness->why_not_ready, &readiness->missing, error))
    return FALSE;
  if (self->names_model)
    muster_fake_chief_registry_fill (muster_fake_master_registry (self->session->master),
                                     readiness);
  return TRUE;
}

static gboolean
is_news (const MusterFakeWatch *self, const MusterReadiness *readiness)
{
  return !self->told || readiness->gate_open != self->last.gate_open ||
         readiness->is_ready != self->last.is_ready ||
         readiness->keeps_announcements != self->last.keeps_announcements ||
         !muster_announcement_equal (readiness->chief, self->last.chief) ||
         g_strcmp0 (readiness->graph_difference, self->last.graph_difference) != 0 ||
         g_strcmp0 (readiness->why_gate, self->last.why_gate) != 0 ||
         g_strcmp0 (readiness->why_not_ready, self->last.why_not_ready) != 0;
}

static void
tell (MusterFakeWatch *self, MusterReadiness *readiness)
{
  muster_readiness_clear (&self->last);
  self->told = TRUE;
  self->last = (MusterReadiness){
      .gate_open = readiness->gate_open,
      .is_ready = readiness->is_ready,
      .why_gate = g_strdup (readiness->why_gate),
      .why_not_ready = g_strdup (readiness->why_not_ready),
      .keeps_announcements = readiness->keeps_announcements,
      .chief = readiness->chief != NULL ? muster_announcement_copy (readiness->chief) : NULL,
      .graph_difference = g_strdup (readiness->graph_difference)};
}

/* Looks whenever something has happened on the clock. */
static gboolean
muster_fake_watch_next (MusterWatch *watch, MusterReadiness *readiness, gint64 until_us,
                        GCancellable *cancellable, GError **error)
{
  MusterFakeWatch *self = MUSTER_FAKE_WATCH (watch);
  MusterFakeClock *clock = muster_fake_master_clock (self->session->master);
  if (!muster_fake_master_ask (self->session->master, "watch", "%s",
                               MIN (self->deadline_us, until_us), cancellable, error))
    return FALSE;
  for (;;) {
    g_auto (MusterReadiness) now = {0};
    if (!look (self, &now, error))
      return FALSE;
    if (is_news (self, &now)) {
      tell (self, &now);
      *readiness = now;
      now = (MusterReadiness){0};
      return TRUE;
    }
    if (muster_clock_now_us (MUSTER_CLOCK (clock)) >= MIN (self->deadline_us, until_us)) {
      g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED, "The watch ran out");
      return FALSE;
    }
    if (!muster_fake_clock_wait_event (clock, MIN (self->deadline_us, until_us), cancellable,
                                       error))
      return FALSE;
  }
}

static void
muster_fake_watch_finalize (GObject *object)
{
  MusterFakeWatch *self = MUSTER_FAKE_WATCH (object);
  g_object_unref (self->session);
  g_free (self->gate_op);
  g_free (self->ready_op);
  muster_readiness_clear (&self->last);
  G_OBJECT_CLASS (muster_fake_watch_parent_class)->finalize (object);
}

static void
muster_fake_watch_class_init (MusterFakeWatchClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = muster_fake_watch_finalize;
  MUSTER_WATCH_CLASS (klass)->next = muster_fake_watch_next;
}

static void
muster_fake_watch_init (MusterFakeWatch *self G_GNUC_UNUSED)
{
}

static void
muster_fake_session_finalize (GObject *object)
{
  MusterFakeSession *self = MUSTER_FAKE_SESSION (object);
  end (self);
  g_object_unref (self->master);
  G_OBJECT_CLASS (muster_fake_session_parent_class)->finalize (object);
}

static void
muster_fake_session_class_init (MusterFakeSessionClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = muster_fake_session_finalize;
  MUSTER_SESSION_CLASS (klass)->run = muster_fake_session_run;
  MUSTER_SESSION_CLASS (klass)->close = muster_fake_session_close;
  MUSTER_SESSION_CLASS (klass)->watch = muster_fake_session_watch;
  MUSTER_SESSION_CLASS (klass)->claim = muster_fake_session_claim;
}

static void
muster_fake_session_init (MusterFakeSession *self G_GNUC_UNUSED)
{
}
