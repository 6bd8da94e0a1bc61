// SPDX-License-Identifier: Apache-2.0
#include "master/master.h"

#include "base/require_private.h"

G_DEFINE_INTERFACE (MusterMaster, muster_master, G_TYPE_OBJECT)

static void
muster_master_default_init (MusterMasterInterface *iface G_GNUC_UNUSED)
{
}

void
muster_device_free (MusterDevice *self)
{
  if (self == NULL)
    return;
  g_free (self->name);
  g_free (self->type);
  g_free (self);
}

const char *
muster_master_target (MusterMaster *self)
{
  g_return_val_if_fail (MUSTER_IS_MASTER (self), NULL);
  const MusterMasterInterface *iface = MUSTER_MASTER_GET_IFACE (self);
  const char *target = iface->target != NULL ? iface->target (self) : NULL;
  return target != NULL ? target : G_OBJECT_TYPE_NAME (self);
}

/* A class in another language may lack any function. */
static gboolean
implements (MusterMaster *self, gboolean has, const char *function, GError **error)
{
  return has || muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED, "%s implements no %s ()",
                             G_OBJECT_TYPE_NAME (self), function);
}

/* Returns what a function of the class has returned. */
static gpointer
result (MusterMaster *self, gpointer made, const char *function, GError **error)
{
  muster_require_error (error, made != NULL, G_OBJECT_TYPE_NAME (self), function);
  return made;
}

MusterSession *
muster_master_create_session (MusterMaster *self, MusterGraph *graph, GBytes *config,
                              gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  muster_require (error, NULL, self);
  if (!muster_deadline_check (deadline_us, error))
    return NULL;
  if (graph == NULL && !MUSTER_MASTER_GET_IFACE (self)->has_graph) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "'%s' has no graph of its own: graph must not be NULL",
                 muster_master_target (self));
    return NULL;
  }
  const MusterMasterInterface *iface = MUSTER_MASTER_GET_IFACE (self);
  if (!implements (self, iface->create_session != NULL, "create_session", error))
    return NULL;
  return result (self, iface->create_session (self, graph, config, deadline_us, cancellable, error),
                 "create_session", error);
}

GPtrArray *
muster_master_list_devices (MusterMaster *self, gint64 deadline_us, GCancellable *cancellable,
                            GError **error)
{
  muster_require (error, NULL, self);
  if (!muster_deadline_check (deadline_us, error))
    return NULL;
  const MusterMasterInterface *iface = MUSTER_MASTER_GET_IFACE (self);
  if (!implements (self, iface->list_devices != NULL, "list_devices", error))
    return NULL;
  return result (self, iface->list_devices (self, deadline_us, cancellable, error), "list_devices",
                 error);
}

gboolean
muster_master_reset (MusterMaster *self, const char *const *containers, gint64 deadline_us,
                     GCancellable *cancellable, GError **error)
{
  muster_require (error, FALSE, self);
  if (!muster_deadline_check (deadline_us, error))
    return FALSE;
  const MusterMasterInterface *iface = MUSTER_MASTER_GET_IFACE (self);
  return implements (self, iface->reset != NULL, "reset", error) &&
         muster_require_error (error,
                               iface->reset (self, containers, deadline_us, cancellable, error),
                               G_OBJECT_TYPE_NAME (self), "reset");
}

gulong
muster_master_on_readiness_changed (MusterMaster *self, MusterReadinessChanged callback,
                                    gpointer user_data)
{
  g_return_val_if_fail (callback != NULL, 0);
  g_return_val_if_fail (MUSTER_IS_MASTER (self), 0);
  MusterMasterInterface *iface = MUSTER_MASTER_GET_IFACE (self);
  return iface->on_readiness_changed != NULL
             ? iface->on_readiness_changed (self, callback, user_data)
             : 0;
}

void
muster_master_off_readiness_changed (MusterMaster *self, gulong id)
{
  g_return_if_fail (MUSTER_IS_MASTER (self));
  MusterMasterInterface *iface = MUSTER_MASTER_GET_IFACE (self);
  if (id != 0 && iface->off_readiness_changed != NULL)
    iface->off_readiness_changed (self, id);
}

gboolean
muster_master_is_remote (MusterMaster *self)
{
  g_return_val_if_fail (MUSTER_IS_MASTER (self), FALSE);
  return MUSTER_MASTER_GET_IFACE (self)->remote != NULL;
}

MusterMaster *
muster_master_remote (MusterMaster *self, gint64 deadline_us, GCancellable *cancellable,
                      GError **error)
{
  muster_require (error, NULL, self);
  if (!muster_deadline_check (deadline_us, error))
    return NULL;
  if (muster_master_is_remote (self))
    return result (self,
                   MUSTER_MASTER_GET_IFACE (self)->remote (self, deadline_us, cancellable, error),
                   "remote", error);
  muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED, "'%s' isn't reached by gRPC",
               muster_master_target (self));
  return NULL;
}

MusterMembership *
muster_master_join (MusterMaster *self, const MusterJoin *join, gint64 deadline_us,
                    GCancellable *cancellable, GError **error)
{
  muster_require (error, NULL, self, join);
  if (!muster_deadline_check (deadline_us, error))
    return NULL;
  muster_require (error, NULL, join->model);
  MusterMasterInterface *iface = MUSTER_MASTER_GET_IFACE (self);
  if (iface->join != NULL)
    return result (self, iface->join (self, join, deadline_us, cancellable, error), "join", error);
  const char *target = muster_master_target (self);
  muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED,
               "'%s' keeps no members; start a server with `muster serve --master=%s`, and join at "
               "its address",
               target, target);
  return NULL;
}

gboolean
muster_master_set_coordinator (MusterMaster *self, MusterMaster *coordinator, GError **error)
{
  muster_require (error, FALSE, self, coordinator);
  MusterMasterInterface *iface = MUSTER_MASTER_GET_IFACE (self);
  if (iface->set_coordinator != NULL)
    return muster_require_error (error, iface->set_coordinator (self, coordinator, error),
                                 G_OBJECT_TYPE_NAME (self), "set_coordinator");
  return muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED,
                      "'%s' isn't behind gRPC, so its job needs no coordinator",
                      muster_master_target (self));
}

gboolean
muster_master_can_reach (MusterMaster *self)
{
  g_return_val_if_fail (MUSTER_IS_MASTER (self), FALSE);
  return MUSTER_MASTER_GET_IFACE (self)->reach != NULL;
}

MusterServerState
muster_master_reach (MusterMaster *self, gint64 deadline_us, GCancellable *cancellable)
{
  g_return_val_if_fail (self != NULL, MUSTER_SERVER_UP);
  if (!muster_master_can_reach (self))
    return MUSTER_SERVER_UP;
  return MUSTER_MASTER_GET_IFACE (self)->reach (self, deadline_us, cancellable);
}
