// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensorflow_master.h"

#include "master/remote_master.h"
#include "runtime/find.h"
#include "runtime/runtime.h"

#include <string.h>

#define SCHEME "tensorflow"

static GQuark
runtime_quark (void)
{
  return g_quark_from_static_string ("muster-tensorflow-runtime");
}

static MusterRuntime *
runtime_of (MusterMaster *self)
{
  return g_object_get_qdata (G_OBJECT (self), runtime_quark ());
}

static void
log_told (const char *text, gpointer user_data G_GNUC_UNUSED)
{
  g_message ("%s", text);
}

MusterMaster *
muster_tensorflow_master_new (const char *path, GError **error)
{
  g_autofree char *library = muster_runtime_find_library (path, error);
  g_autofree char *helper = library != NULL ? muster_runtime_find_helper (error) : NULL;
  if (helper == NULL)
    return NULL;
  const MusterRuntimeOptions options = {.library = library, .helper = helper, .told = log_told};
  g_autoptr (MusterRuntime) runtime = muster_runtime_new (&options, error);
  if (runtime == NULL)
    return NULL;
  g_autofree char *target = g_strdup_printf ("grpc://127.0.0.1:%u", muster_runtime_port (runtime));
  MusterMaster *master = muster_remote_master_new (target, error);
  if (master != NULL)
    g_object_set_qdata_full (G_OBJECT (master), runtime_quark (), g_steal_pointer (&runtime),
                             (GDestroyNotify)muster_runtime_unref);
  return master;
}

char *
muster_tensorflow_master_describe (MusterMaster *self)
{
  MusterRuntime *runtime = runtime_of (self);
  if (runtime == NULL)
    return NULL;
  return g_strdup_printf ("TensorFlow %s from '%s', as process %d",
                          muster_runtime_version (runtime), muster_runtime_library (runtime),
                          muster_runtime_pid (runtime, NULL));
}

int
muster_tensorflow_master_process (MusterMaster *self)
{
  MusterRuntime *runtime = runtime_of (self);
  return runtime != NULL ? muster_runtime_pid (runtime, NULL) : 0;
}

static MusterMaster *
the_tensorflow_master (const char *target, GError **error)
{
  static GMutex lock;
  static GHashTable *masters; /* guarded by lock: target -> MusterMaster, for the process's life */
  const char *path = target[strlen (SCHEME)] == ':' ? target + strlen (SCHEME) + 1 : NULL;
  if (path != NULL && (*path == '\0' || g_str_has_prefix (path, "//"))) {
    g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT,
                 "'%s' is no target: say 'tensorflow', or 'tensorflow:PATH' with the path of its "
                 "library or virtual environment",
                 target);
    return NULL;
  }
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&lock);
  if (masters == NULL)
    masters = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_object_unref);
  MusterMaster *master = g_hash_table_lookup (masters, target);
  if (master == NULL) {
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
