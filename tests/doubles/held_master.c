// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/held_master.h"

struct _MusterHeldMaster {
  GObject parent;
  MusterMaster *inner; /* (owned) */
  GMutex lock;
  GCond changed;
  gboolean is_held;                       /* guarded by lock */
  guint n_waiting;                        /* guarded by lock */
  void (*after_run) (gpointer user_data); /* (nullable) */
  gpointer after_run_data;
};

typedef struct {
  MusterSession parent;
  MusterHeldMaster *master; /* (owned) */
  MusterSession *inner;     /* (owned) */
} MusterHeldSession;

typedef struct {
  MusterSessionClass parent;
} MusterHeldSessionClass;

static void held_master_iface (MusterMasterInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (MusterHeldMaster, muster_held_master, G_TYPE_OBJECT,
                               G_IMPLEMENT_INTERFACE (MUSTER_TYPE_MASTER, held_master_iface))
G_DEFINE_TYPE (MusterHeldSession, muster_held_session, MUSTER_TYPE_SESSION)

MusterHeldMaster *
muster_held_master_new (MusterMaster *inner)
{
  MusterHeldMaster *self = g_object_new (MUSTER_TYPE_HELD_MASTER, NULL);
  self->inner = g_object_ref (inner);
  return self;
}

void
muster_held_master_hold (MusterHeldMaster *self, gboolean is_held)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  self->is_held = is_held;
  g_cond_broadcast (&self->changed);
}

gboolean
muster_held_master_wait_for_call (MusterHeldMaster *self)
{
  const gint64 until_us = g_get_monotonic_time () + 30 * MUSTER_SECOND;
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  while (self->n_waiting == 0 && g_cond_wait_until (&self->changed, &self->lock, until_us))
    ;
  return self->n_waiting > 0;
}

void
muster_held_master_after_run (MusterHeldMaster *self, void (*func) (gpointer user_data),
                              gpointer user_data)
{
  self->after_run = func;
  self->after_run_data = user_data;
}

static void
on_cancelled (GCancellable *cancellable G_GNUC_UNUSED, gpointer data)
{
  MusterHeldMaster *self = data;
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  g_cond_broadcast (&self->changed);
}

/* With the lock. */
static gboolean
wait_locked (MusterHeldMaster *self, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  while (self->is_held) {
    if (g_cancellable_set_error_if_cancelled (cancellable, error))
      return FALSE;
    if (g_get_monotonic_time () >= deadline_us)
      return muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED, "the master is held");
    (void)g_cond_wait_until (&self->changed, &self->lock, deadline_us);
  }
  return TRUE;
}

/* FALSE if the call ends before it is let go. */
static gboolean
pass (MusterHeldMaster *self, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  const gulong id = cancellable != NULL
                        ? g_cancellable_connect (cancellable, G_CALLBACK (on_cancelled), self, NULL)
                        : 0;
  g_mutex_lock (&self->lock);
  self->n_waiting++;
  g_cond_broadcast (&self->changed);
  const gboolean passes = wait_locked (self, deadline_us, cancellable, error);
  self->n_waiting--;
  g_mutex_unlock (&self->lock);
  g_cancellable_disconnect (cancellable, id);
  return passes;
}

/* --- its sessions --- */

static gboolean
held_run (MusterSession *base, const MusterStep *step, MusterTensor **fetched, GBytes **metadata,
          GCancellable *cancellable, GError **error)
{
  MusterHeldSession *self = (MusterHeldSession *)base;
  if (!pass (self->master, step->deadline_us, cancellable, error) ||
      !muster_session_run (self->inner, step, fetched, metadata, cancellable, error))
    return FALSE;
  if (self->master->after_run != NULL)
    self->master->after_run (self->master->after_run_data);
  return TRUE;
}

static gboolean
held_extend (MusterSession *base, MusterGraph *graph, gint64 deadline_us, GCancellable *cancellable,
             GError **error)
{
  MusterHeldSession *self = (MusterHeldSession *)base;
  return pass (self->master, deadline_us, cancellable, error) &&
         muster_session_extend (self->inner, graph, deadline_us, cancellable, error);
}

static gboolean
held_close (MusterSession *base, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  return muster_session_close (((MusterHeldSession *)base)->inner, deadline_us, cancellable, error);
}

static void
held_session_finalize (GObject *object)
{
  MusterHeldSession *self = (MusterHeldSession *)object;
  g_clear_object (&self->inner);
  g_clear_object (&self->master);
  G_OBJECT_CLASS (muster_held_session_parent_class)->finalize (object);
}

static void
muster_held_session_class_init (MusterHeldSessionClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = held_session_finalize;
  ((MusterSessionClass *)klass)->run = held_run;
  ((MusterSessionClass *)klass)->extend = held_extend;
  ((MusterSessionClass *)klass)->close = held_close;
}

static void
muster_held_session_init (MusterHeldSession *self G_GNUC_UNUSED)
{
}

/* --- the master --- */

static MusterSession *
create_session (MusterMaster *base, MusterGraph *graph, GBytes *config, gint64 deadline_us,
                GCancellable *cancellable, GError **error)
{
  MusterHeldMaster *self = MUSTER_HELD_MASTER (base);
  g_autoptr (MusterSession) inner =
      pass (self, deadline_us, cancellable, error)
          ? muster_master_create_session (self->inner, graph, config, deadline_us, cancellable,
                                          error)
          : NULL;

  if (inner == NULL)
    return NULL;
  MusterHeldSession *session = g_object_new (muster_held_session_get_type (), NULL);
  session->master = g_object_ref (self);
  muster_session_set_identity (MUSTER_SESSION (session), muster_session_handle (inner), graph);
  session->inner = g_steal_pointer (&inner);
  return MUSTER_SESSION (session);
}

static GPtrArray *
list_devices (MusterMaster *base, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  MusterHeldMaster *self = MUSTER_HELD_MASTER (base);
  return pass (self, deadline_us, cancellable, error)
             ? muster_master_list_devices (self->inner, deadline_us, cancellable, error)
             : NULL;
}

static gboolean
reset (MusterMaster *base, const char *const *containers, gint64 deadline_us,
       GCancellable *cancellable, GError **error)
{
  MusterHeldMaster *self = MUSTER_HELD_MASTER (base);
  return pass (self, deadline_us, cancellable, error) &&
         muster_master_reset (self->inner, containers, deadline_us, cancellable, error);
}

static const char *
target (MusterMaster *base G_GNUC_UNUSED)
{
  return "held";
}

static void
held_master_iface (MusterMasterInterface *iface)
{
  iface->create_session = create_session;
  iface->list_devices = list_devices;
  iface->reset = reset;
  iface->target = target;
}

static void
held_master_finalize (GObject *object)
{
  MusterHeldMaster *self = MUSTER_HELD_MASTER (object);
  g_clear_object (&self->inner);
  g_mutex_clear (&self->lock);
  g_cond_clear (&self->changed);
  G_OBJECT_CLASS (muster_held_master_parent_class)->finalize (object);
}

static void
muster_held_master_class_init (MusterHeldMasterClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = held_master_finalize;
}

static void
muster_held_master_init (MusterHeldMaster *self)
{
  g_mutex_init (&self->lock);
  g_cond_init (&self->changed);
}
