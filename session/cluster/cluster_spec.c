// SPDX-License-Identifier: Apache-2.0
/* The tasks of a cluster, which one this process is, and which master its sessions use.
 * TF_CONFIG is read in tf_config.c. */
#include "session/cluster/cluster_spec.h"

#include "base/fields_private.h"
#include "base/require_private.h"
#include "base/unpack_private.h"
#include "rpc/address_private.h"
#include "rpc/proto/master.pb-c.h"
#include "session/cluster/cluster_spec_private.h"

#include <string.h>

/* --- its life --- */

static void
task_clear (gpointer data)
{
  MusterClusterTask *task = data;
  g_free ((char *)task->job);
  g_free ((char *)task->address);
}

static gboolean
check (const MusterClusterSpec *self, GError **error)
{
  guint n = self->job != NULL ? muster_cluster_spec_n_tasks (self, self->job) : 0;
  if (muster_cluster_spec_n_tasks (self, "chief") > 1)
    return muster_tf_config_error (error, ": \"cluster\" has %u chiefs, but a job has one",
                                   muster_cluster_spec_n_tasks (self, "chief"));
  if (self->job == NULL || g_str_equal (self->job, "evaluator") ||
      muster_cluster_spec_own (self) != NULL)
    return TRUE;
  return muster_tf_config_error (error, ": this task is %s:%u, but \"cluster\" has %u such tasks%s",
                                 self->job, self->index, n, n > self->index ? ", others" : "");
}

/* The task isn't in the cluster, but has this address. */
static gboolean
set_address (MusterClusterSpec *self, const char *address, GError **error)
{
  const MusterClusterTask *known = muster_cluster_spec_own (self);
  g_autofree char *host = NULL;
  guint16 port;
  if (!muster_address_parse (address, &host, &port, error))
    return FALSE;
  if (known != NULL)
    return g_str_equal (known->address, address) ||
           muster_tf_config_error (error, ": %s:%u is at '%s' in \"cluster\", not at '%s'",
                                   self->job, self->index, known->address, address);
  if (!g_str_equal (self->job, "worker") || muster_cluster_spec_n_tasks (self, "ps") == 0)
    return muster_tf_config_error (error,
                                   ": %s:%u isn't in \"cluster\"; only a worker may be outside, "
                                   "of a cluster with a job \"ps\"",
                                   self->job, self->index);
  const MusterClusterTask own = {g_strdup (self->job), self->index, g_strdup (address)};
  g_array_append_val (self->tasks, own);
  self->is_outside = TRUE;
  return TRUE;
}

/* "worker:3", or "worker:3=HOST:PORT". */
static gboolean
set_task (MusterClusterSpec *self, const char *task, GError **error)
{
  const char *equals = strchr (task, '=');
  g_autofree char *name =
      equals != NULL ? g_strndup (task, (gsize)(equals - task)) : g_strdup (task);
  const char *colon = strrchr (name, ':');
  guint64 index;
  if (colon == NULL || colon == name ||
      !g_ascii_string_to_unsigned (colon + 1, 10, 0, MUSTER_MOST_TASKS, &index, NULL))
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "invalid task '%s' of a cluster (use JOB:INDEX, such as worker:0)", task);
  g_free (self->job);
  self->job = g_strndup (name, (gsize)(colon - name));
  self->index = (guint)index;
  return equals == NULL || set_address (self, equals + 1, error);
}

MusterClusterSpec *
muster_cluster_spec_new (const char *tf_config, GError **error)
{
  return muster_cluster_spec_new_for_task (tf_config, NULL, error);
}

MusterClusterSpec *
muster_cluster_spec_new_for_task (const char *tf_config, const char *task, GError **error)
{
  g_autoptr (MusterClusterSpec) self = g_new0 (MusterClusterSpec, 1);
  g_atomic_ref_count_init (&self->refs);
  self->tasks = g_array_new (FALSE, FALSE, sizeof (MusterClusterTask));
  g_array_set_clear_func (self->tasks, task_clear);
  self->admitted = g_ptr_array_new_with_free_func (g_free);
  const gboolean is_given = tf_config != NULL && *tf_config;
  if (!is_given && task == NULL)
    return g_steal_pointer (&self);
  return (!is_given || muster_cluster_spec_read (self, tf_config, error)) &&
                 (task == NULL || set_task (self, task, error)) && check (self, error)
             ? g_steal_pointer (&self)
             : NULL;
}

MusterClusterSpec *
muster_cluster_spec_ref (MusterClusterSpec *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
muster_cluster_spec_free (MusterClusterSpec *self)
{
  if (self == NULL || !g_atomic_ref_count_dec (&self->refs))
    return;
  g_array_unref (self->tasks);
  g_ptr_array_unref (self->admitted);
  g_free (self->job);
  g_free (self->session_master);
  g_free (self->coordinator);
  g_free (self);
}

G_DEFINE_BOXED_TYPE (MusterClusterSpec, muster_cluster_spec, muster_cluster_spec_ref,
                     muster_cluster_spec_free)

MUSTER_DEFINE_OPTIONS (MusterClusterTask, muster_cluster_task)

/* --- its tasks --- */

gboolean
muster_cluster_spec_is_empty (const MusterClusterSpec *self)
{
  g_return_val_if_fail (self != NULL, FALSE);
  return self->tasks->len == 0 && self->job == NULL &&
         !(self->session_master != NULL && *self->session_master);
}

const MusterClusterTask *
muster_cluster_spec_tasks (const MusterClusterSpec *self, gsize *n)
{
  g_return_val_if_fail (self != NULL && n != NULL, NULL);

  *n = self->tasks->len;
  return (const MusterClusterTask *)self->tasks->data;
}

const MusterClusterTask *
muster_cluster_spec_find (const MusterClusterSpec *self, const char *job, guint index)
{
  g_return_val_if_fail (self != NULL && job != NULL, NULL);

  for (guint i = 0; i < self->tasks->len; i++) {
    const MusterClusterTask *task = &g_array_index (self->tasks, MusterClusterTask, i);
    if (task->index == index && g_str_equal (task->job, job))
      return task;
  }
  return NULL;
}

const MusterClusterTask *
muster_cluster_spec_own (const MusterClusterSpec *self)
{
  return self->job != NULL ? muster_cluster_spec_find (self, self->job, self->index) : NULL;
}

gboolean
muster_cluster_spec_is_outside (const MusterClusterSpec *self)
{
  return self->is_outside;
}

const GPtrArray *
muster_cluster_spec_admitted (const MusterClusterSpec *self)
{
  return self->admitted;
}

guint
muster_cluster_spec_n_tasks (const MusterClusterSpec *self, const char *job)
{
  g_return_val_if_fail (self != NULL && job != NULL, 0);

  guint n = 0;
  for (guint i = 0; i < self->tasks->len; i++)
    n += g_str_equal (g_array_index (self->tasks, MusterClusterTask, i).job, job);
  return n;
}

const char *
muster_cluster_spec_job (const MusterClusterSpec *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->job;
}

guint
muster_cluster_spec_index (const MusterClusterSpec *self)
{
  g_return_val_if_fail (self != NULL, 0);
  return self->index;
}

/* --- who does what --- */

/* Returns the chief's job; "master" is its older name. */
static const char *
job_of_chief (const MusterClusterSpec *self)
{
  if (muster_cluster_spec_n_tasks (self, "chief") > 0)
    return "chief";
  return muster_cluster_spec_n_tasks (self, "master") > 0 ? "master" : "worker";
}

gboolean
muster_cluster_spec_is_chief (const MusterClusterSpec *self)
{
  g_return_val_if_fail (self != NULL, FALSE);
  return muster_cluster_spec_trainer (self) == 0;
}

guint
muster_cluster_spec_n_trainers (const MusterClusterSpec *self)
{
  g_return_val_if_fail (self != NULL, 0);
  return muster_cluster_spec_n_tasks (self, "worker") +
         !g_str_equal (job_of_chief (self), "worker");
}

gint
muster_cluster_spec_trainer (const MusterClusterSpec *self)
{
  g_return_val_if_fail (self != NULL, 0);

  const char *chief = job_of_chief (self);
  gboolean is_apart = !g_str_equal (chief, "worker");
  gint number = is_apart;
  gsize n;
  const MusterClusterTask *tasks = muster_cluster_spec_tasks (self, &n);
  if (self->job == NULL)
    return -1;
  if (is_apart && g_str_equal (self->job, chief))
    return self->index == 0 ? 0 : -1;
  if (!g_str_equal (self->job, "worker"))
    return -1;
  if (self->is_outside) /* of those between, it knows nothing */
    return number + (gint)self->index;
  for (gsize i = 0; i < n; i++)
    number += g_str_equal (tasks[i].job, "worker") && tasks[i].index < self->index;
  return number;
}

/* --- its sessions --- */

static char *
target_of (const char *address)
{
  return strstr (address, "://") != NULL ? g_strdup (address)
                                         : g_strconcat ("grpc://", address, NULL);
}

char *
muster_cluster_spec_target (const MusterClusterSpec *self, GError **error)
{
  muster_require (error, NULL, self);

  const MusterClusterTask *own = muster_cluster_spec_own (self);

  if (self->session_master != NULL && *self->session_master)
    return g_str_equal (self->session_master, "local") ? g_strdup ("local")
                                                       : target_of (self->session_master);
  if (own != NULL && self->tasks->len == 1)
    return g_strdup ("local");
  if (own != NULL)
    return target_of (own->address);
  if (self->job != NULL)
    muster_tf_config_error (error, ": %s:%u has no server in \"cluster\"; set \"session_master\"",
                            self->job, self->index);
  else
    muster_tf_config_error (
        error, " names no task; set --task=JOB:INDEX, or \"task\" or \"session_master\" in it");
  return NULL;
}

char *
muster_cluster_spec_coordinator (const MusterClusterSpec *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->coordinator != NULL && *self->coordinator ? target_of (self->coordinator) : NULL;
}

gboolean
muster_cluster_spec_has_own_masters (const MusterClusterSpec *self)
{
  g_return_val_if_fail (self != NULL, FALSE);
  return muster_cluster_spec_n_trainers (self) > 1 &&
         !(self->session_master != NULL && *self->session_master);
}

/* What a worker outside the cluster is called in its sessions. TensorFlow takes all of their
 * devices for remote ones, and places nodes that name none on the first by name: "outside" is
 * before "ps".
 */
#define JOB_OUTSIDE "outside"

/* The parameter servers and this task, as its sessions tell them to those. (transfer full) */
static GBytes *
pack_own_cluster (const MusterClusterSpec *self)
{
  g_autoptr (GArray) needed = g_array_new (FALSE, FALSE, sizeof (MusterClusterTask));
  MusterClusterTask own = *muster_cluster_spec_own (self);
  for (guint i = 0; i < self->tasks->len; i++) {
    const MusterClusterTask *task = &g_array_index (self->tasks, MusterClusterTask, i);
    if (g_str_equal (task->job, "ps"))
      g_array_append_val (needed, *task);
  }
  own.job = JOB_OUTSIDE;
  g_array_append_val (needed, own);
  return muster_cluster_def_pack ((const MusterClusterTask *)needed->data, needed->len);
}

/* Filters as TensorFlow's Estimator does. */
char **
muster_cluster_spec_device_filters (const MusterClusterSpec *self)
{
  g_return_val_if_fail (self != NULL, NULL);

  GStrvBuilder *builder;
  if (self->job == NULL || muster_cluster_spec_n_tasks (self, "ps") == 0 ||
      g_str_equal (self->job, "evaluator"))
    return NULL;
  builder = g_strv_builder_new ();
  if (g_str_equal (self->job, "ps")) {
    g_strv_builder_add_many (builder, "/job:ps", "/job:worker", "/job:chief", "/job:master", NULL);
  } else {
    g_autofree char *own = g_strdup_printf (
        "/job:%s/task:%u", self->is_outside ? JOB_OUTSIDE : self->job, self->index);
    g_strv_builder_add_many (builder, "/job:ps", own, NULL);
  }
  char **filters = g_strv_builder_end (builder);
  g_strv_builder_unref (builder);
  return filters;
}

static gboolean
has_filters (GBytes *config, gboolean *has, GError **error)
{
  g_autoptr (MusterArena) arena = muster_arena_new ();
  gsize size;
  const void *data = g_bytes_get_data (config, &size);
  const Tensorflow__ConfigProto *message =
      muster_unpack (&tensorflow__config_proto__descriptor, data, size, arena, "config", error);

  if (message != NULL)
    *has = message->n_device_filters > 0;
  return message != NULL;
}

/* Two concatenated messages are one message. */
static GBytes *
join (GBytes *first, GBytes *second)
{
  GByteArray *both = g_byte_array_new ();
  g_byte_array_append (both, g_bytes_get_data (first, NULL), g_bytes_get_size (first));
  g_byte_array_append (both, g_bytes_get_data (second, NULL), g_bytes_get_size (second));
  return g_byte_array_free_to_bytes (both);
}

GBytes *
muster_cluster_spec_config (const MusterClusterSpec *self, GBytes *config, GError **error)
{
  muster_require (error, NULL, self);

  Tensorflow__ConfigProto own = TENSORFLOW__CONFIG_PROTO__INIT;
  Tensorflow__ConfigProto__Experimental sharing = TENSORFLOW__CONFIG_PROTO__EXPERIMENTAL__INIT;
  g_auto (GStrv) filters = muster_cluster_spec_device_filters (self);
  g_autoptr (GBytes) cluster = self->is_outside ? pack_own_cluster (self) : NULL;
  gboolean has = FALSE;
  sharing.share_session_state_in_clusterspec_propagation = TRUE;
  if (config != NULL && !has_filters (config, &has, error))
    return NULL;
  if (cluster == NULL && (filters == NULL || has))
    return config != NULL ? g_bytes_ref (config) : NULL;
  if (!has) {
    own.n_device_filters = g_strv_length (filters);
    own.device_filters = filters;
  }
  if (cluster != NULL) {
    own.cluster_def = (ProtobufCBinaryData){g_bytes_get_size (cluster),
                                            (guint8 *)g_bytes_get_data (cluster, NULL)};
    own.experimental = &sharing;
  }
  g_autoptr (GBytes) packed = muster_pack (&own.base);
  return config != NULL ? join (config, packed) : g_steal_pointer (&packed);
}

/* TRUE if a filter accepts a task: "/job:ps" or "/job:worker/task:1". */
static gboolean
lets_through (const char *const *filters, const MusterClusterTask *task)
{
  g_autofree char *job = g_strconcat ("/job:", task->job, NULL);
  g_autofree char *whole = g_strdup_printf ("%s/task:%u", job, task->index);
  return filters == NULL || g_strv_contains (filters, job) || g_strv_contains (filters, whole);
}

/* Returns TRUE for this task's own master: its sessions show whether it answers. */
static gboolean
is_own_master (const MusterClusterSpec *self, const MusterClusterTask *task)
{
  return !(self->session_master != NULL && *self->session_master) && self->job != NULL &&
         g_str_equal (self->job, task->job) && self->index == task->index;
}

static char *
name_of (const MusterClusterTask *task)
{
  return g_strdup_printf ("%s:%u=%s", task->job, task->index, task->address);
}

char **
muster_cluster_spec_peers (const MusterClusterSpec *self)
{
  g_return_val_if_fail (self != NULL, NULL);

  g_auto (GStrv) filters = muster_cluster_spec_device_filters (self);
  g_autoptr (GPtrArray) peers = g_ptr_array_new ();
  gsize n;
  const MusterClusterTask *tasks = muster_cluster_spec_tasks (self, &n);
  for (gsize i = 0; i < n; i++)
    if (!is_own_master (self, &tasks[i]) && lets_through ((const char *const *)filters, &tasks[i]))
      g_ptr_array_add (peers, name_of (&tasks[i]));
  g_ptr_array_add (peers, NULL);
  return (char **)g_ptr_array_steal (peers, NULL);
}

const MusterClusterTask *
muster_cluster_spec_chief_task (const MusterClusterSpec *self)
{
  const char *job = job_of_chief (self);
  gsize n = 0;
  const MusterClusterTask *tasks = muster_cluster_spec_tasks (self, &n);
  for (gsize i = 0; i < n; i++)
    if (g_str_equal (tasks[i].job, job))
      return &tasks[i];
  return NULL;
}

char *
muster_cluster_spec_chief (const MusterClusterSpec *self)
{
  g_return_val_if_fail (self != NULL, NULL);

  if (!muster_cluster_spec_has_own_masters (self) || muster_cluster_spec_is_chief (self))
    return NULL;
  const MusterClusterTask *chief = muster_cluster_spec_chief_task (self);
  return chief != NULL ? name_of (chief) : NULL;
}
