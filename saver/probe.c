// SPDX-License-Identifier: Apache-2.0
/* Checks whether the devices that save see the chief's directory. The chief writes a file with a
 * random key, and one step reads it on the device of each SaveV2 node. The nodes that read are
 * added to the session once. */
#include "saver/probe_private.h"

#include "base/crc32c_private.h"
#include "checkpoint/format/bundle_index_private.h"
#include "checkpoint/format/bundle_strings_private.h"
#include "checkpoint/store/storage_private.h"
#include "graph/device_name_private.h"
#include "graph/graph_builder.h"
#include "graph/meta_graph/meta_graph.h"
#include "saver/builder/save_nodes_private.h"
#include "saver/saver_private.h"

#include <string.h>

#define TENSOR     "probe"
#define NODE_SCOPE "muster_probe"

/* --- who saves --- */

static void
note_device (GArray *readers, const char *device)
{
  for (guint i = 0; i < readers->len; i++)
    if (strcmp (g_array_index (readers, MusterProbeReader, i).device, device) == 0)
      return;
  MusterProbeReader reader = {.device = g_strdup (device)};
  g_array_append_val (readers, reader);
}

static int
compare_readers (gconstpointer a, gconstpointer b)
{
  return strcmp (((const MusterProbeReader *)a)->device, ((const MusterProbeReader *)b)->device);
}

/* Finds the devices of the SaveV2 nodes that the save op needs. */
static GArray *
find_readers (MusterSaver *self)
{
  GArray *readers = muster_probe_readers_new ();
  g_autoptr (GPtrArray) saves =
      muster_save_nodes_behind (muster_meta_graph_graph (self->meta_graph), self->info.save_tensor);
  for (guint i = 0; i < saves->len; i++)
    note_device (readers, ((const MusterNode *)saves->pdata[i])->kind->device);
  g_array_sort (readers, compare_readers);
  return readers;
}

/* Returns TRUE for failures unrelated to the directory, which would have ended the save, too. */
static gboolean
is_no_answer (const GError *failure)
{
  static const MusterError codes[] = {MUSTER_ERROR_DEADLINE_EXCEEDED, MUSTER_ERROR_UNAVAILABLE,
                                      MUSTER_ERROR_ABORTED, MUSTER_ERROR_CANCELLED,
                                      MUSTER_ERROR_UNAUTHENTICATED};
  if (g_error_matches (failure, G_IO_ERROR, G_IO_ERROR_CANCELLED))
    return TRUE;
  for (guint i = 0; i < G_N_ELEMENTS (codes); i++)
    if (muster_error_is (failure, codes[i]))
      return TRUE;
  return FALSE;
}

/* --- their nodes --- */

static void
add_reader (MusterGraphBuilder *builder, const char *filename, const char *scope,
            MusterProbeReader *reader)
{
  const MusterDType dtype = MUSTER_STRING;
  g_autofree char *node = g_strconcat (scope, "/RestoreV2", NULL);
  g_autofree char *names = g_strconcat (node, "/tensor_names", NULL);
  g_autofree char *slices = g_strconcat (node, "/shape_and_slices", NULL);

  const char *const vectors[][3] = {{names, TENSOR, NULL}, {slices, "", NULL}};
  for (gsize i = 0; i < G_N_ELEMENTS (vectors); i++) {
    g_autoptr (MusterTensor) value = muster_tensor_new_strv (vectors[i] + 1);
    muster_graph_builder_constant (builder, vectors[i][0], value);
    if (*reader->device)
      muster_graph_builder_device (builder, reader->device);
  }
  muster_graph_builder_node (builder, "RestoreV2", node);
  muster_graph_builder_input (builder, filename);
  muster_graph_builder_input (builder, names);
  muster_graph_builder_input (builder, slices);
  muster_graph_builder_attr_types (builder, "dtypes", &dtype, 1);
  if (*reader->device)
    muster_graph_builder_device (builder, reader->device);
  reader->restore = g_strconcat (node, ":0", NULL);
}

/* Adds the nodes. key makes their names unique in the session, since another saver may have
 * added some. NULL without an error: the session can't be probed. */
static MusterProbeNodes *
add_nodes (MusterSession *session, GArray *readers, const char *key, gint64 deadline_us,
           GCancellable *cancellable, GError **error)
{
  g_autoptr (MusterGraphBuilder) builder = muster_graph_builder_new_extension ();
  g_autoptr (MusterProbeNodes) self =
      muster_probe_nodes_new (g_strdup_printf ("%s/%s/filename", NODE_SCOPE, key), readers);
  g_autoptr (GError) failure = NULL;

  muster_graph_builder_placeholder (builder, self->filename, MUSTER_STRING, 0, NULL);
  for (guint i = 0; i < readers->len; i++) {
    g_autofree char *scope = g_strdup_printf ("%s/%s/%u", NODE_SCOPE, key, i);
    add_reader (builder, self->filename, scope, &g_array_index (readers, MusterProbeReader, i));
  }
  g_autoptr (MusterGraph) graph = muster_graph_builder_end (builder, error);
  if (graph == NULL)
    return NULL;
  if (muster_session_extend (session, graph, deadline_us, cancellable, &failure))
    return g_steal_pointer (&self);
  if (is_no_answer (failure))
    g_propagate_error (error, g_steal_pointer (&failure));
  return NULL;
}

/* --- the file --- */

static char *
random_key (MusterSaver *self)
{
  GString *key = g_string_new (NULL);
  for (int i = 0; i < MUSTER_PROBE_KEY_LEN / 8; i++)
    g_string_append_printf (key, "%08x",
                            (guint32)(muster_clock_random (self->clock) * G_MAXUINT32));
  return g_string_free (key, FALSE);
}

/* A checkpoint of one text, as small as it is: nothing is published, and nothing reserved. */
static gboolean
write_file (MusterStorage *storage, const char *prefix, const char *key, GError **error)
{
  g_autofree char *data_path = muster_bundle_data_path (prefix, 0, 1);
  g_autofree char *index_path = muster_bundle_index_path (prefix);
  g_autoptr (MusterTensor) value = muster_tensor_new_string (key);
  g_autoptr (MusterBundleIndex) index = muster_bundle_index_new ();
  g_autoptr (GByteArray) data = g_byte_array_new ();
  const guint32 crc = muster_strings_encode (value, data);
  g_byte_array_append (data, (const guint8 *)key, (guint)strlen (key));
  index->n_shards = 1;
  muster_bundle_index_add (index, &(MusterIndexEntry){.entry = {.dtype = MUSTER_STRING,
                                                                .size = data->len,
                                                                .crc32c = muster_crc32c_mask (crc)},
                                                      .key = (const guint8 *)TENSOR,
                                                      .key_size = strlen (TENSOR)});
  g_autoptr (GBytes) file = muster_bundle_index_save (index, error);
  return file != NULL &&
         muster_storage_write_synced (storage, data_path, data->data, data->len, error) &&
         muster_storage_write_synced (storage, index_path, g_bytes_get_data (file, NULL),
                                      g_bytes_get_size (file), error);
}

static void
remove_file_quietly (MusterSaver *self, const char *directory, const char *prefix)
{
  g_autofree char *name = g_path_get_basename (prefix);
  g_autofree char *start = g_strconcat (name, ".", NULL);
  g_autoptr (MusterStorage) storage = muster_storage_for_cleanup (self->storage);
  g_auto (GStrv) all = muster_storage_list (storage, directory, NULL);

  for (char **file = all; file != NULL && *file != NULL; file++) {
    g_autofree char *path = g_build_filename (directory, *file, NULL);
    if (g_str_has_prefix (*file, start))
      (void)muster_storage_remove (storage, path, NULL); /* the probe's own result counts */
  }
}

/* --- asking --- */

static gboolean
is_key (const MusterTensor *tensor, const char *key)
{
  g_autofree char *read = NULL;
  return muster_tensor_get_string (tensor, &read, NULL) && strcmp (read, key) == 0;
}

/* One probe: its path, and which readers see it. */
typedef struct {
  const MusterProbeNodes *nodes;
  MusterSession *session;
  const char *key;
  const char *path; /* as the master knows it */
  gboolean *sees;   /* one for each reader */
  gboolean is_file; /* in a store that the master doesn't know, whatever fails is that */
  char *denied;     /* (owned) (nullable) why one may not read it */
  gint64 deadline_us;
  GCancellable *cancellable;
} Query;

static const MusterProbeReader *
reader_at (const MusterProbeNodes *nodes, guint i)
{
  return &g_array_index (nodes->readers, MusterProbeReader, i);
}

/* Runs n of the readers in one step. FALSE if the step failed. */
static gboolean
read_back (const Query *self, guint first, guint n, GError **error)
{
  g_autoptr (MusterTensor) filename = muster_tensor_new_string (self->path);
  g_autofree const char **fetches = g_new (const char *, n);
  g_autofree MusterTensor **fetched = g_new0 (MusterTensor *, n);
  const MusterFeed feed = {self->nodes->filename, filename};
  const MusterStep step = {.feeds = &feed,
                           .n_feeds = 1,
                           .fetches = fetches,
                           .n_fetches = n,
                           .deadline_us = self->deadline_us};

  for (guint i = 0; i < n; i++)
    fetches[i] = reader_at (self->nodes, first + i)->restore;
  if (!muster_session_run (self->session, &step, fetched, NULL, self->cancellable, error))
    return FALSE;
  for (guint i = 0; i < n; i++) {
    self->sees[first + i] = is_key (fetched[i], self->key);
    muster_tensor_unref (fetched[i]);
  }
  return TRUE;
}

/* TensorFlow names the task that reports, then the cause, then the nodes, each on a line. */
static char *
cause_of (const GError *failure)
{
  g_auto (GStrv) lines = g_strsplit (failure->message, "\n", 3);
  const gboolean has_task = g_str_has_prefix (lines[0], "From /job:") && lines[1] != NULL;
  return g_strdup (lines[has_task ? 1 : 0]);
}

/* Asks one reader. A device that can't be asked doesn't count as failed: the save itself reports
 * it. */
static gboolean
ask_one (Query *self, guint i, GError **error)
{
  g_autoptr (GError) failure = NULL;
  if (read_back (self, i, 1, &failure))
    return TRUE;
  if (is_no_answer (failure)) {
    g_propagate_error (error, g_steal_pointer (&failure));
    return FALSE;
  }
  const gboolean is_denied =
      !self->is_file || muster_error_is (failure, MUSTER_ERROR_PERMISSION_DENIED);
  self->sees[i] = !muster_error_is (failure, MUSTER_ERROR_NOT_FOUND) && !is_denied;
  if (is_denied && self->denied == NULL)
    self->denied = cause_of (failure);
  return TRUE;
}

/* Asks all readers in one step. After a failure they are asked one by one, since an error names
 * one device at most. */
static gboolean
ask (Query *self, GError **error)
{
  if (read_back (self, 0, self->nodes->readers->len, NULL))
    return TRUE;
  for (guint i = 0; i < self->nodes->readers->len; i++)
    if (!ask_one (self, i, error))
      return FALSE;
  return TRUE;
}

/* "ps:0", or the whole device name if it has no task. */
static char *
name_of (const MusterProbeReader *reader)
{
  g_autofree char *task = muster_device_task (reader->device);

  if (task != NULL)
    return g_steal_pointer (&task);
  return *reader->device ? g_strdup_printf ("the master's %s", reader->device)
                         : g_strdup ("the master");
}

static gboolean
judge (const Query *self, const char *directory, GError **error)
{
  g_autoptr (GPtrArray) blind = g_ptr_array_new_with_free_func (g_free);
  for (guint i = 0; i < self->nodes->readers->len; i++) {
    g_autofree char *name = name_of (reader_at (self->nodes, i));
    if (!self->sees[i] && !g_ptr_array_find_with_equal_func (blind, name, g_str_equal, NULL))
      g_ptr_array_add (blind, g_steal_pointer (&name));
  }
  if (blind->len == 0)
    return TRUE;
  gboolean is_one = blind->len == 1;
  g_ptr_array_add (blind, NULL);
  g_autofree char *names = g_strjoinv (", ", (char **)blind->pdata);
  if (self->denied != NULL)
    return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION, "%s can't use '%s': %s", names,
                        directory, self->denied);
  return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION, "%s %s see '%s' of host '%s'", names,
                      is_one ? "doesn't" : "don't", directory, g_get_host_name ());
}

static gboolean
probe_with (MusterSaver *self, MusterStorage *storage, Query *condition, const char *directory,
            GError **error)
{
  g_autofree char *key = random_key (self);
  g_autofree char *name = g_strconcat (MUSTER_PROBE_PREFIX, key, NULL);
  g_autofree char *prefix = g_build_filename (directory, name, NULL);
  g_autofree char *path = muster_path_for_master (self->storage, prefix);
  g_autofree gboolean *sees = g_new0 (gboolean, condition->nodes->readers->len);

  condition->key = key;
  condition->path = path;
  condition->sees = sees;
  condition->is_file = muster_storage_can_rename (self->storage, directory);
  gboolean asked = write_file (storage, prefix, key, error) && ask (condition, error);
  remove_file_quietly (self, directory, prefix);
  const gboolean is_seen = asked && judge (condition, directory, error);
  g_clear_pointer (&condition->denied, g_free);
  return is_seen;
}

/* --- the whole of it --- */

/* Finds the session's nodes, and adds them if necessary. FALSE with an error. */
static gboolean
nodes_for (MusterSaver *self, MusterSession *session, MusterProbeNodes **nodes, gint64 deadline_us,
           GCancellable *cancellable, GError **error)
{
  g_autoptr (GArray) readers = find_readers (self);
  g_autofree char *key = random_key (self);
  g_autoptr (GError) failure = NULL;

  if (readers->len > 0)
    *nodes = add_nodes (session, readers, key, deadline_us, cancellable, &failure);
  if (failure != NULL) {
    g_propagate_error (error, g_steal_pointer (&failure));
    return FALSE;
  }
  muster_probe_remember_nodes (self->probe, session, *nodes);
  return TRUE;
}

gboolean
muster_saver_probe_once (MusterSaver *self, MusterSession *session, const char *directory,
                         gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  g_autoptr (MusterProbeNodes) nodes = NULL;
  g_autofree char *unseen = NULL;
  g_autoptr (GError) failure = NULL;
  gboolean is_seen = FALSE;
  if (self->no_probe)
    return TRUE;
  if (!muster_probe_recall (self->probe, session, directory, &nodes, &is_seen, &unseen) &&
      !nodes_for (self, session, &nodes, deadline_us, cancellable, error))
    return FALSE;
  if (nodes == NULL || is_seen)
    return TRUE;
  if (unseen != NULL)
    return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION, "%s", unseen);
  Query condition = {
      .nodes = nodes, .session = session, .deadline_us = deadline_us, .cancellable = cancellable};
  g_autoptr (MusterStorage) storage =
      muster_storage_bound (self->storage, deadline_us, self->clock, cancellable);
  if (!muster_storage_make_directory (storage, directory, error))
    return FALSE;
  const gboolean is_shared = probe_with (self, storage, &condition, directory, &failure);
  if (is_shared || muster_error_is (failure, MUSTER_ERROR_FAILED_PRECONDITION))
    muster_probe_remember_directory (self->probe, session, directory,
                                     is_shared ? NULL : failure->message);
  if (!is_shared)
    g_propagate_error (error, g_steal_pointer (&failure));
  return is_shared;
}
