// SPDX-License-Identifier: Apache-2.0
#include "master/remote/near_master_private.h"

#include "base/error.h"
#include "master/remote/remote_master_private.h"
#include "rpc/address_private.h"
#include "rpc/client/reach_probe_private.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of a connection within this machine. */
#define PROBE_US MUSTER_SECOND

#define MUSTER_TYPE_NEAR_MASTER (muster_near_master_get_type ())
G_DECLARE_FINAL_TYPE (MusterNearMaster, muster_near_master, MUSTER, NEAR_MASTER, GObject)

struct _MusterNearMaster {
  GObject parent;
  MusterMaster *far;  /* (owned) */
  MusterMaster *near; /* (owned) the gateway */
  char *address;      /* (owned) the gateway's */
  gint has_gateway;   /* atomic */
};

static void muster_near_master_iface_init (MusterMasterInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (MusterNearMaster, muster_near_master, G_TYPE_OBJECT,
                               G_IMPLEMENT_INTERFACE (MUSTER_TYPE_MASTER,
                                                      muster_near_master_iface_init))

gboolean
muster_near_master_may_use (const char *gateway)
{
  struct stat st;
  g_autofree char *folder = g_path_get_dirname (muster_address_unix_path (gateway));
  return lstat (folder, &st) == 0 && S_ISDIR (st.st_mode) && st.st_uid == geteuid () &&
         (st.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* A gateway listens before its task does, so a task that is up without one has none. Borrowed. */
static MusterMaster *
choose (MusterMaster *master, gint64 deadline_us, GCancellable *cancellable)
{
  MusterNearMaster *self = MUSTER_NEAR_MASTER (master);
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  MusterReachProber prober;
  if (g_atomic_int_get (&self->has_gateway))
    return self->near;
  if (!muster_near_master_may_use (self->address))
    return self->far;
  muster_reach_prober_init (&prober, self->address);
  const int why = muster_reach_probe (
      &prober, MIN (deadline_us, muster_deadline_after (now_us, PROBE_US)), cancellable);
  muster_reach_prober_clear (&prober);
  if (why == ECONNREFUSED || why == ENOENT)
    return self->far;
  if (why == 0 || why == EAGAIN) /* neither late nor cancelled */
    g_atomic_int_set (&self->has_gateway, TRUE);
  return self->near;
}

/* --- the master --- */

static MusterSession *
near_create_session (MusterMaster *master, MusterGraph *graph, GBytes *config, gint64 deadline_us,
                     GCancellable *cancellable, GError **error)
{
  return muster_master_create_session (choose (master, deadline_us, cancellable), graph, config,
                                       deadline_us, cancellable, error);
}

static GPtrArray *
near_list_devices (MusterMaster *master, gint64 deadline_us, GCancellable *cancellable,
                   GError **error)
{
  return muster_master_list_devices (choose (master, deadline_us, cancellable), deadline_us,
                                     cancellable, error);
}

static gboolean
near_reset (MusterMaster *master, const char *const *containers, gint64 deadline_us,
            GCancellable *cancellable, GError **error)
{
  return muster_master_reset (choose (master, deadline_us, cancellable), containers, deadline_us,
                              cancellable, error);
}

static const char *
near_target (MusterMaster *master)
{
  const MusterNearMaster *self = MUSTER_NEAR_MASTER (master);
  return muster_master_target (g_atomic_int_get (&self->has_gateway) ? self->near : self->far);
}

static MusterMaster *
near_remote (MusterMaster *master, gint64 deadline_us, GCancellable *cancellable,
             GError **error G_GNUC_UNUSED)
{
  return g_object_ref (choose (master, deadline_us, cancellable));
}

static MusterServerState
near_reach (MusterMaster *master, gint64 deadline_us, GCancellable *cancellable)
{
  return muster_master_reach (choose (master, deadline_us, cancellable), deadline_us, cancellable);
}

static MusterMembership *
near_join (MusterMaster *master, const MusterJoin *join, gint64 deadline_us,
           GCancellable *cancellable, GError **error)
{
  return muster_master_join (choose (master, deadline_us, cancellable), join, deadline_us,
                             cancellable, error);
}

static gboolean
near_set_coordinator (MusterMaster *master, MusterMaster *coordinator, GError **error)
{
  MusterNearMaster *self = MUSTER_NEAR_MASTER (master);
  return muster_master_set_coordinator (self->far, coordinator, error) &&
         muster_master_set_coordinator (self->near, coordinator, error);
}

static void
muster_near_master_iface_init (MusterMasterInterface *iface)
{
  iface->create_session = near_create_session;
  iface->list_devices = near_list_devices;
  iface->reset = near_reset;
  iface->target = near_target;
  iface->remote = near_remote;
  iface->reach = near_reach;
  iface->join = near_join;
  iface->set_coordinator = near_set_coordinator;
}

/* --- the object --- */

MusterMaster *
muster_near_master_new (MusterMaster *far, const char *gateway, GError **error)
{
  g_autoptr (MusterMaster) near = muster_remote_master_new (gateway, error);
  if (near == NULL)
    return NULL;
  MusterNearMaster *self = g_object_new (MUSTER_TYPE_NEAR_MASTER, NULL);
  self->far = g_object_ref (far);
  self->near = g_steal_pointer (&near);
  muster_remote_master_copy_outside (MUSTER_REMOTE_MASTER (self->near), MUSTER_REMOTE_MASTER (far));
  self->address = g_strdup (gateway);
  return MUSTER_MASTER (self);
}

static void
muster_near_master_finalize (GObject *object)
{
  MusterNearMaster *self = MUSTER_NEAR_MASTER (object);
  g_clear_object (&self->far);
  g_clear_object (&self->near);
  g_free (self->address);
  G_OBJECT_CLASS (muster_near_master_parent_class)->finalize (object);
}

static void
muster_near_master_class_init (MusterNearMasterClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = muster_near_master_finalize;
}

static void
muster_near_master_init (MusterNearMaster *self G_GNUC_UNUSED)
{
}
