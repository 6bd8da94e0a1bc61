// SPDX-License-Identifier: Apache-2.0
#include "engine/session/local_master.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory_private.h"
#include "engine/session/local_session.h"
#include "engine/session/op_tables.h"
#include "master/remote/target.h"

struct _MusterLocalMaster {
  GObject parent;
  MusterLocalShared *shared; /* (owned) */
  guint64 incarnation;
};

static void muster_local_master_iface_init (MusterMasterInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (MusterLocalMaster, muster_local_master, G_TYPE_OBJECT,
                               G_IMPLEMENT_INTERFACE (MUSTER_TYPE_MASTER,
                                                      muster_local_master_iface_init))

/* The memory that TensorFlow reports for a CPU. */
#define DEVICE_MEMORY (256 << 20)

MusterMaster *
muster_local_master_new (void)
{
  return muster_local_master_new_with (NULL, 0);
}

MusterMaster *
muster_local_master_new_with (MusterStorage *storage, guint64 max_op_bytes)
{
  muster_op_tables_register ();
  MusterLocalMaster *self = g_object_new (MUSTER_TYPE_LOCAL_MASTER, NULL);
  const guint64 most = max_op_bytes != 0 ? max_op_bytes : muster_memory_total () / 2;
  self->shared = muster_local_shared_new (storage, MIN (most, G_MAXSSIZE));
  return MUSTER_MASTER (self);
}

static MusterMaster *
the_local_master (const char *target, GError **error)
{
  static GMutex lock;
  static MusterMaster *master;
  if (!g_str_equal (target, "local")) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "invalid target '%s' (use 'local' for the engine in this process)", target);
    return NULL;
  }
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&lock);
  if (master == NULL)
    master = muster_local_master_new ();
  return g_object_ref (master);
}

void
muster_local_master_offer (void)
{
  muster_master_offer ("local", the_local_master);
}

/* Returns FALSE if the caller has given up; nothing below takes long enough to check again. */
static gboolean
check_caller (gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return FALSE;
  if (deadline_us == MUSTER_WAIT_FOREVER ||
      muster_clock_now_us (muster_system_clock ()) < deadline_us)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED,
                      "Deadline Exceeded: the deadline passed before the call to the local master");
}

static MusterSession *
local_master_create_session (MusterMaster *master, MusterGraph *graph, GBytes *config,
                             gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  MusterSessionConfig read;
  if (!check_caller (deadline_us, cancellable, error) ||
      !muster_session_config_read (config, &read, error))
    return NULL;
  return muster_local_session_new (MUSTER_LOCAL_MASTER (master)->shared, graph, &read, error);
}

static GPtrArray *
local_master_list_devices (MusterMaster *master, gint64 deadline_us, GCancellable *cancellable,
                           GError **error)
{
  if (!check_caller (deadline_us, cancellable, error))
    return NULL;
  MusterDevice *device = g_new0 (MusterDevice, 1);
  device->name = g_strdup (MUSTER_LOCAL_DEVICE);
  device->type = g_strdup ("CPU");
  device->memory_limit = DEVICE_MEMORY;
  device->incarnation = MUSTER_LOCAL_MASTER (master)->incarnation;
  GPtrArray *devices = g_ptr_array_new_with_free_func ((GDestroyNotify)muster_device_free);
  g_ptr_array_add (devices, device);
  return devices;
}

static gboolean
local_master_reset (MusterMaster *master, const char *const *containers, gint64 deadline_us,
                    GCancellable *cancellable, GError **error)
{
  MusterLocalShared *shared = MUSTER_LOCAL_MASTER (master)->shared;
  if (!check_caller (deadline_us, cancellable, error))
    return FALSE;
  g_mutex_lock (&shared->lock);
  for (guint i = 0; i < shared->sessions->len; i++)
    muster_local_session_reset (g_ptr_array_index (shared->sessions, i));
  g_ptr_array_set_size (shared->sessions, 0);
  g_mutex_unlock (&shared->lock);
  if (muster_resources_clear (shared->resources, containers))
    muster_local_shared_notify (shared);
  return TRUE;
}

static const char *
local_master_target (MusterMaster *master G_GNUC_UNUSED)
{
  return "local";
}

static gulong
local_master_on_readiness_changed (MusterMaster *master, MusterReadinessChanged callback,
                                   gpointer user_data)
{
  return muster_local_shared_watch (MUSTER_LOCAL_MASTER (master)->shared, callback, user_data);
}

static void
local_master_off_readiness_changed (MusterMaster *master, gulong id)
{
  muster_local_shared_unwatch (MUSTER_LOCAL_MASTER (master)->shared, id);
}

static void
local_master_finalize (GObject *object)
{
  muster_local_shared_unref (MUSTER_LOCAL_MASTER (object)->shared);
  G_OBJECT_CLASS (muster_local_master_parent_class)->finalize (object);
}

static void
muster_local_master_class_init (MusterLocalMasterClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = local_master_finalize;
}

static void
muster_local_master_iface_init (MusterMasterInterface *iface)
{
  iface->create_session = local_master_create_session;
  iface->list_devices = local_master_list_devices;
  iface->reset = local_master_reset;
  iface->target = local_master_target;
  iface->on_readiness_changed = local_master_on_readiness_changed;
  iface->off_readiness_changed = local_master_off_readiness_changed;
}

static void
muster_local_master_init (MusterLocalMaster *self)
{
  MusterClock *clock = muster_system_clock ();
  self->incarnation = 1 + (guint64)(muster_clock_random (clock) * 9007199254740992.0);
}
