// SPDX-License-Identifier: Apache-2.0
#include "tests/server/stuck_master.h"

struct _MusterStuckMaster {
  GObject parent;
  GMutex lock;
  GCond changed;
  guint n_stuck;   /* guarded by lock */
  guint n_whole;   /* guarded by lock */
  gboolean let_go; /* guarded by lock */
  gint n_sessions; /* atomic */
};

typedef struct {
  MusterSession parent;
  MusterStuckMaster *master; /* (owned) */
  gboolean is_closed;        /* guarded by the master's lock */
} MusterStuckSession;

typedef struct {
  MusterSessionClass parent;
} MusterStuckSessionClass;

static void stuck_master_iface (MusterMasterInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (MusterStuckMaster, muster_stuck_master, G_TYPE_OBJECT,
                               G_IMPLEMENT_INTERFACE (MUSTER_TYPE_MASTER, stuck_master_iface))
G_DEFINE_TYPE (MusterStuckSession, muster_stuck_session, MUSTER_TYPE_SESSION)

MusterStuckMaster *
stuck_master_new (void)
{
  return g_object_new (MUSTER_TYPE_STUCK_MASTER, NULL);
}

gboolean
stuck_master_wait_for (MusterStuckMaster *self, guint n)
{
  gint64 until = g_get_monotonic_time () + 30 * G_TIME_SPAN_SECOND;
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  while (self->n_stuck != n && g_cond_wait_until (&self->changed, &self->lock, until))
    ;
  return self->n_stuck == n;
}

guint
stuck_master_n_whole (MusterStuckMaster *self)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  return self->n_whole;
}

static void
notify (MusterStuckMaster *self)
{
  g_mutex_lock (&self->lock);
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

void
stuck_master_let_go (MusterStuckMaster *self)
{
  g_mutex_lock (&self->lock);
  self->let_go = TRUE;
  g_cond_broadcast (&self->changed);
  g_mutex_unlock (&self->lock);
}

static void
on_cancelled (GCancellable *cancellable G_GNUC_UNUSED, gpointer master)
{
  notify (master);
}

/* With the lock held. */
static gboolean
get_stuck (MusterStuckSession *self, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  MusterStuckMaster *master = self->master;
  while (!master->let_go) {
    if (self->is_closed) {
      g_set_error_literal (error, MUSTER_ERROR, MUSTER_ERROR_CANCELLED, "the session was closed");
      return FALSE;
    }
    if (g_cancellable_set_error_if_cancelled (cancellable, error))
      return FALSE;
    if (muster_clock_now_us (muster_system_clock ()) >= deadline_us) {
      g_set_error_literal (error, MUSTER_ERROR, MUSTER_ERROR_DEADLINE_EXCEEDED,
                           "the step was stuck for too long");
      return FALSE;
    }
    g_cond_wait_until (&master->changed, &master->lock, deadline_us);
  }
  return TRUE;
}

static gboolean
fetch_stuck (MusterSession *base, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  MusterStuckSession *self = (MusterStuckSession *)base;
  MusterStuckMaster *master = self->master;
  gulong id = cancellable != NULL
                  ? g_cancellable_connect (cancellable, G_CALLBACK (on_cancelled), master, NULL)
                  : 0;
  g_mutex_lock (&master->lock);
  master->n_stuck++;
  g_cond_broadcast (&master->changed);
  const gboolean done = get_stuck (self, deadline_us, cancellable, error);
  master->n_stuck--;
  master->n_whole += done;
  g_cond_broadcast (&master->changed);
  g_mutex_unlock (&master->lock);
  g_cancellable_disconnect (cancellable, id);
  return done;
}

static gboolean
stuck_run (MusterSession *base, const MusterStep *step, MusterTensor **fetched,
           GBytes **metadata G_GNUC_UNUSED, GCancellable *cancellable, GError **error)
{
  if (step->n_fetches > 0 && g_str_has_prefix (step->fetches[0], "stuck") &&
      !fetch_stuck (base, step->deadline_us, cancellable, error))
    return FALSE;
  for (gsize i = 0; i < step->n_fetches; i++)
    fetched[i] = muster_tensor_new_float (42);
  return TRUE;
}

static gint64
stuck_make_callable (MusterSession *base G_GNUC_UNUSED, const MusterStep *step G_GNUC_UNUSED,
                     gint64 deadline_us G_GNUC_UNUSED, GCancellable *cancellable G_GNUC_UNUSED,
                     GError **error G_GNUC_UNUSED)
{
  static gint n_callables; /* atomic */
  return g_atomic_int_add (&n_callables, 1) + 1;
}

static gboolean
stuck_run_callable (MusterSession *base, gint64 callable G_GNUC_UNUSED,
                    MusterTensor *const *feeds G_GNUC_UNUSED, gsize n_feeds G_GNUC_UNUSED,
                    gint64 deadline_us, MusterTensor **fetched, GBytes **metadata G_GNUC_UNUSED,
                    GCancellable *cancellable, GError **error)
{
  if (!fetch_stuck (base, deadline_us, cancellable, error))
    return FALSE;
  fetched[0] = muster_tensor_new_float (42);
  return TRUE;
}

static char *
stuck_set_up_partial_run (MusterSession *base G_GNUC_UNUSED, const MusterStep *step G_GNUC_UNUSED,
                          gint64 deadline_us G_GNUC_UNUSED, GCancellable *cancellable G_GNUC_UNUSED,
                          GError **error G_GNUC_UNUSED)
{
  return g_strdup ("parts");
}

static gboolean
stuck_run_part (MusterSession *base, const char *partial_run G_GNUC_UNUSED, const MusterStep *part,
                MusterTensor **fetched, GBytes **metadata, GCancellable *cancellable,
                GError **error)
{
  return stuck_run (base, part, fetched, metadata, cancellable, error);
}

static gboolean
stuck_close (MusterSession *base, gint64 deadline_us G_GNUC_UNUSED,
             GCancellable *cancellable G_GNUC_UNUSED, GError **error G_GNUC_UNUSED)
{
  MusterStuckSession *self = (MusterStuckSession *)base;
  g_mutex_lock (&self->master->lock);
  self->is_closed = TRUE;
  g_cond_broadcast (&self->master->changed);
  g_mutex_unlock (&self->master->lock);
  return TRUE;
}

static void
stuck_session_finalize (GObject *object)
{
  g_clear_object (&((MusterStuckSession *)object)->master);
  G_OBJECT_CLASS (muster_stuck_session_parent_class)->finalize (object);
}

static void
muster_stuck_session_class_init (MusterStuckSessionClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = stuck_session_finalize;
  MusterSessionClass *session = (MusterSessionClass *)klass;
  session->run = stuck_run;
  session->make_callable = stuck_make_callable;
  session->run_callable = stuck_run_callable;
  session->set_up_partial_run = stuck_set_up_partial_run;
  session->run_part = stuck_run_part;
  session->close = stuck_close;
}

static void
muster_stuck_session_init (MusterStuckSession *self G_GNUC_UNUSED)
{
}

static MusterSession *
stuck_create_session (MusterMaster *base, MusterGraph *graph, GBytes *config G_GNUC_UNUSED,
                      gint64 deadline_us G_GNUC_UNUSED, GCancellable *cancellable G_GNUC_UNUSED,
                      GError **error G_GNUC_UNUSED)
{
  MusterStuckMaster *self = MUSTER_STUCK_MASTER (base);
  MusterStuckSession *session = g_object_new (muster_stuck_session_get_type (), NULL);
  session->master = g_object_ref (self);
  g_autofree char *handle = g_strdup_printf ("%d", g_atomic_int_add (&self->n_sessions, 1));
  muster_session_set_identity (MUSTER_SESSION (session), handle, graph);
  return MUSTER_SESSION (session);
}

static const char *
stuck_target (MusterMaster *master G_GNUC_UNUSED)
{
  return "stuck";
}

static gboolean
stuck_reset (MusterMaster *master G_GNUC_UNUSED, const char *const *containers G_GNUC_UNUSED,
             gint64 deadline_us G_GNUC_UNUSED, GCancellable *cancellable G_GNUC_UNUSED,
             GError **error)
{
  g_set_error_literal (error, MUSTER_ERROR, MUSTER_ERROR_UNIMPLEMENTED, "it can't be reset");
  return FALSE;
}

static void
stuck_master_iface (MusterMasterInterface *iface)
{
  iface->target = stuck_target;
  iface->create_session = stuck_create_session;
  iface->reset = stuck_reset;
}

static void
stuck_master_finalize (GObject *object)
{
  MusterStuckMaster *self = MUSTER_STUCK_MASTER (object);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
  G_OBJECT_CLASS (muster_stuck_master_parent_class)->finalize (object);
}

static void
muster_stuck_master_class_init (MusterStuckMasterClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = stuck_master_finalize;
}

static void
muster_stuck_master_init (MusterStuckMaster *self)
{
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
}
