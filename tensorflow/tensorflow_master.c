// SPDX-License-Identifier: Apache-2.0
/* The master `tensorflow`: it waits for the runtime, then is a remote master at the runtime's
 * port. */
#include "tensorflow/tensorflow_master.h"

#include "base/log_private.h"
#include "base/require_private.h"
#include "master/remote/remote_master.h"
#include "master/remote/remote_master_private.h"
#include "master/remote/target.h"
#include "session/cluster/cluster_spec_private.h"
#include "tensorflow/find_private.h"
#include "tensorflow/runtime_private.h"

#include <string.h>

#define SCHEME "tensorflow"

struct _MusterTensorflowMaster {
  GObject parent;
  char *target;           /* (owned) "tensorflow", "tensorflow:PATH" */
  MusterRuntime *runtime; /* (owned) */
  MusterMaster
      *remote;    /* (owned): the master at the runtime's port, whichever process serves there */
  GBytes *config; /* (owned) (nullable) a cluster's task: the ConfigProto of sessions without one */
  gint n_met;     /* atomic: the number of the runtime's starts that remote has seen */
};

static void muster_tensorflow_master_iface_init (MusterMasterInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (MusterTensorflowMaster, muster_tensorflow_master, G_TYPE_OBJECT,
                               G_IMPLEMENT_INTERFACE (MUSTER_TYPE_MASTER,
                                                      muster_tensorflow_master_iface_init))

static void
log_report (const char *text, gpointer user_data G_GNUC_UNUSED)
{
  muster_log (G_LOG_LEVEL_MESSAGE, "runtime", "MESSAGE", "%s", text);
}

static MusterMaster *
make_master (const char *path, const MusterClusterSpec *cluster, const char *const *directories,
             GError **error)
{
  g_autofree char *library = muster_runtime_find_library (path, error);
  g_autofree char *helper = library != NULL ? muster_runtime_find_helper (error) : NULL;
  if (helper == NULL)
    return NULL;
  const MusterRuntimeOptions options = {.library = library,
                                        .helper = helper,
                                        .directories = directories,
                                        .cluster = cluster,
                                        .report = log_report};
  g_autoptr (MusterRuntime) runtime = muster_runtime_new (&options, error);
  if (runtime == NULL)
    return NULL;
  g_autofree char *target = g_strdup_printf ("grpc://127.0.0.1:%u", muster_runtime_port (runtime));
  g_autoptr (MusterMaster) remote = muster_remote_master_new (target, error);
  if (remote == NULL)
    return NULL;
  if (cluster == NULL)
    muster_remote_master_set_one_task (MUSTER_REMOTE_MASTER (remote));
  else
    muster_cluster_spec_tell_master (cluster, MUSTER_REMOTE_MASTER (remote));
  MusterTensorflowMaster *self = g_object_new (MUSTER_TYPE_TENSORFLOW_MASTER, NULL);
  self->target = path != NULL ? g_strconcat (SCHEME ":", path, NULL) : g_strdup (SCHEME);
  self->runtime = g_steal_pointer (&runtime);
  self->remote = g_steal_pointer (&remote);
  self->config = cluster != NULL ? muster_cluster_spec_config (cluster, NULL, NULL) : NULL;
  self->n_met = 1;
  return MUSTER_MASTER (self);
}

MusterMaster *
muster_tensorflow_master_new (const char *path, GError **error)
{
  return make_master (path, NULL, NULL, error);
}

/* The path of "tensorflow:PATH"; NULL for "tensorflow". */
static gboolean
read_target (const char *target, const char **path, GError **error)
{
  *path = target[strlen (SCHEME)] == ':' ? target + strlen (SCHEME) + 1 : NULL;
  if (*path == NULL || (**path != '\0' && !g_str_has_prefix (*path, "//")))
    return TRUE;
  return muster_fail (
      error, MUSTER_ERROR_INVALID_ARGUMENT,
      "invalid target '%s' (use tensorflow, or tensorflow:PATH with the path of its "
      "library or virtual environment)",
      target);
}

static MusterMaster *
master_at (const char *target, const MusterClusterSpec *cluster, const char *const *directories,
           GError **error)
{
  const char *path;
  if (!g_str_has_prefix (target, SCHEME)) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "invalid target '%s' (use tensorflow or tensorflow:PATH)", target);
    return NULL;
  }
  return read_target (target, &path, error) ? make_master (path, cluster, directories, error)
                                            : NULL;
}

MusterMaster *
muster_tensorflow_master_new_within (const char *target, const char *const *directories,
                                     GError **error)
{
  muster_require (error, NULL, target, directories);
  return master_at (target, NULL, directories, error);
}

MusterMaster *
muster_tensorflow_master_new_task (const char *target, const MusterClusterSpec *cluster,
                                   const char *const *directories, GError **error)
{
  muster_require (error, NULL, target, cluster);
  return master_at (target, cluster, directories, error);
}

char *
muster_tensorflow_master_describe (MusterTensorflowMaster *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  const char *version = muster_runtime_version (self->runtime);
  const char *library = muster_runtime_library (self->runtime);
  if (version == NULL)
    return g_strdup_printf ("TensorFlow from '%s', not serving yet", library);
  return g_strdup_printf ("TensorFlow %s from '%s', as process %d", version, library,
                          muster_runtime_pid (self->runtime, NULL));
}

/* --- the master --- */

static gboolean
await_runtime (MusterMaster *master, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  MusterTensorflowMaster *self = MUSTER_TENSORFLOW_MASTER (master);
  guint n_starts;
  if (!muster_runtime_await (self->runtime, deadline_us, cancellable, error))
    return FALSE;
  (void)muster_runtime_pid (self->runtime, &n_starts);
  if (n_starts == (guint)g_atomic_int_get (&self->n_met))
    return TRUE;
  /* The connection broken by the process's end may still be backing off. */
  if (!muster_remote_master_await (MUSTER_REMOTE_MASTER (self->remote), deadline_us, cancellable,
                                   error))
    return FALSE;
  g_atomic_int_set (&self->n_met, (gint)n_starts);
  return TRUE;
}

/* A session holds the runtime, even if the master is freed. Without a ConfigProto, as those in
 * which a gateway asks whether a model is ready, it waits for no task that the task's own wouldn't.
 */
static MusterSession *
create_session (MusterMaster *master, MusterGraph *graph, GBytes *config, gint64 deadline_us,
                GCancellable *cancellable, GError **error)
{
  MusterTensorflowMaster *self = MUSTER_TENSORFLOW_MASTER (master);
  if (!await_runtime (master, deadline_us, cancellable, error))
    return NULL;
  MusterSession *session = muster_master_create_session (
      self->remote, graph, config != NULL ? config : self->config, deadline_us, cancellable, error);
  if (session != NULL)
    g_object_set_data_full (G_OBJECT (session), "muster-tensorflow-runtime",
                            muster_runtime_ref (self->runtime),
                            (GDestroyNotify)muster_runtime_unref);
  return session;
}

static GPtrArray *
list_devices (MusterMaster *master, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  if (!await_runtime (master, deadline_us, cancellable, error))
    return NULL;
  return muster_master_list_devices (MUSTER_TENSORFLOW_MASTER (master)->remote, deadline_us,
                                     cancellable, error);
}

static gboolean
reset (MusterMaster *master, const char *const *containers, gint64 deadline_us,
       GCancellable *cancellable, GError **error)
{
  return await_runtime (master, deadline_us, cancellable, error) &&
         muster_master_reset (MUSTER_TENSORFLOW_MASTER (master)->remote, containers, deadline_us,
                              cancellable, error);
}

static MusterMaster *
get_remote (MusterMaster *master, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  if (!await_runtime (master, deadline_us, cancellable, error))
    return NULL;
  return g_object_ref (MUSTER_TENSORFLOW_MASTER (master)->remote);
}

static const char *
get_target (MusterMaster *master)
{
  return MUSTER_TENSORFLOW_MASTER (master)->target;
}

static void
muster_tensorflow_master_iface_init (MusterMasterInterface *iface)
{
  iface->create_session = create_session;
  iface->list_devices = list_devices;
  iface->reset = reset;
  iface->target = get_target;
  iface->remote = get_remote;
}

static void
muster_tensorflow_master_finalize (GObject *object)
{
  MusterTensorflowMaster *self = MUSTER_TENSORFLOW_MASTER (object);
  g_clear_object (&self->remote);
  g_clear_pointer (&self->config, g_bytes_unref);
  g_clear_pointer (&self->runtime, muster_runtime_unref);
  g_free (self->target);
  G_OBJECT_CLASS (muster_tensorflow_master_parent_class)->finalize (object);
}

static void
muster_tensorflow_master_class_init (MusterTensorflowMasterClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = muster_tensorflow_master_finalize;
}

static void
muster_tensorflow_master_init (MusterTensorflowMaster *self G_GNUC_UNUSED)
{
}

/* --- masters by target */

static MusterMaster *
the_tensorflow_master (const char *target, GError **error)
{
  static GMutex lock;
  static GHashTable *masters; /* guarded by lock: target -> MusterMaster, for the process's life */
  const char *path;
  if (!read_target (target, &path, error))
    return NULL;
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&lock);
  if (masters == NULL)
    masters = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_object_unref);
  MusterMaster *master = g_hash_table_lookup (masters, target);
  if (master == NULL || muster_runtime_is_over (MUSTER_TENSORFLOW_MASTER (master)->runtime)) {
    master = muster_tensorflow_master_new (path, error);
    if (master == NULL)
      return NULL;
    g_hash_table_insert (masters, g_strdup (target), master);
  }
  return g_object_ref (master);
}

void
muster_tensorflow_master_offer (void)
{
  muster_master_offer (SCHEME, the_tensorflow_master);
}
