// SPDX-License-Identifier: Apache-2.0
/* Checkpoints in the memory of another server: the store's operations over gRPC, and saves that are
 * stopped at each call. */
#include "base/error.h"
#include "checkpoint/store/forwarding_storage.h"
#include "checkpoint/stores/default_storage.h"
#include "engine/session/local_master.h"
#include "server/server.h"
#include "session/peer/peer_storage_private.h"
#include "tests/deadline.h"
#include "tests/gtest_shim.h"
#include "tests/saver/model_life.h"

#include <string.h>

/* --- a peer --- */

typedef struct {
  MusterMaster *master;
  MusterServer *server;
  MusterStorage *storage;
  char *directory;
} Peer;

static void
serve (Peer *f, const char *address, guint64 n_bytes)
{
  const MusterServerOptions options = {.file_bytes = n_bytes};
  g_autoptr (GError) error = NULL;
  f->server = muster_server_new (f->master, &options);
  const int port = muster_server_listen (f->server, address, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  muster_server_start (f->server);
  g_free (f->directory);
  f->directory = g_strdup_printf ("grpc://127.0.0.1:%d/run", port);
}

static Peer
set_up (guint64 n_bytes)
{
  Peer f = {.master = muster_local_master_new (), .storage = muster_peer_storage_new (NULL)};
  serve (&f, "127.0.0.1:0", n_bytes);
  return f;
}

static void
tear_down (Peer *f)
{
  g_clear_object (&f->storage);
  g_clear_pointer (&f->server, muster_server_free);
  g_clear_object (&f->master);
  g_free (f->directory);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Peer, tear_down)

#define MIB ((guint64)1 << 20)

static char *
path_of (const Peer *f, const char *name)
{
  return g_build_filename (f->directory, name, NULL);
}

static gboolean
write_file (Peer *f, const char *name, gsize size, GError **error)
{
  g_autofree char *path = path_of (f, name);
  g_autofree guint8 *data = g_malloc (size + 1);
  for (gsize i = 0; i < size; i++)
    data[i] = (guint8)(i * 7 / 5);
  MusterStorageFile *file = muster_storage_create (f->storage, path, error);
  if (file == NULL)
    return FALSE;
  for (gsize at = 0; at < size; at += 300 * 1000)
    if (!muster_storage_append (f->storage, file, data + at, MIN (size - at, 300 * 1000), error)) {
      muster_storage_abandon (f->storage, file);
      return FALSE;
    }
  return muster_storage_close (f->storage, file, error);
}

/* -1 where a byte is wrong. */
static gssize
read_file (Peer *f, const char *name, GError **error)
{
  g_autofree char *path = path_of (f, name);
  g_autoptr (GBytes) bytes = muster_storage_read (f->storage, path, error);
  if (bytes == NULL)
    return -1;
  gsize size;
  const guint8 *data = g_bytes_get_data (bytes, &size);
  for (gsize i = 0; i < size; i++)
    if (data[i] != (guint8)(i * 7 / 5))
      return -1;
  return (gssize)size;
}

MUSTER_TEST (PeerStorage, reads_what_was_written)
{
  g_auto (Peer) f = set_up (100 * MIB);
  const gsize sizes[] = {0, 1, 300 * 1000, 4 << 20, (4 << 20) + 1, 9 << 20};
  for (gsize i = 0; i < G_N_ELEMENTS (sizes); i++) {
    g_autofree char *name = g_strdup_printf ("file-%u", (guint)i);
    g_autoptr (GError) error = NULL;
    MUSTER_EXPECT_TRUE (write_file (&f, name, sizes[i], &error));
    MUSTER_EXPECT_EQ (read_file (&f, name, &error), (gssize)sizes[i]);
    MUSTER_EXPECT_NO_ERROR (error);
  }
  g_auto (GStrv) names = muster_storage_list (f.storage, f.directory, NULL);
  MUSTER_EXPECT_EQ (g_strv_length (names), G_N_ELEMENTS (sizes));
}

MUSTER_TEST (PeerStorage, never_replaces_a_file_that_another_writer_has_made)
{
  g_auto (Peer) f = set_up (MIB);
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (write_file (&f, "file", 10, NULL));
  MUSTER_EXPECT_FALSE (write_file (&f, "file", 20, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED);
  MUSTER_EXPECT_EQ (read_file (&f, "file", NULL), 10);
}

MUSTER_TEST (PeerStorage, replaces_the_version_that_was_read)
{
  g_auto (Peer) f = set_up (MIB);
  g_autofree char *path = path_of (&f, "state"), *first = NULL, *second = NULL;
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (muster_storage_replace (f.storage, path, "a", 1, "", &first, &error));
  MUSTER_EXPECT_TRUE (muster_storage_replace (f.storage, path, "b", 1, first, &second, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_FALSE (muster_storage_replace (f.storage, path, "c", 1, first, NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_ABORTED);
}

/* By which an evaluator knows it again. */
MUSTER_TEST (PeerStorage, has_one_time_for_each_file)
{
  g_auto (Peer) f = set_up (MIB);
  g_autofree char *path = path_of (&f, "file");
  const gint64 began_us = g_get_real_time ();
  MusterStorageInfo first = {0}, second = {0};
  MUSTER_EXPECT_TRUE (write_file (&f, "file", 10, NULL));
  MUSTER_EXPECT_TRUE (muster_storage_stat (f.storage, path, &first, NULL));
  MUSTER_EXPECT_TRUE (muster_storage_stat (f.storage, path, &second, NULL));
  MUSTER_EXPECT_EQ (second.mtime_us, first.mtime_us);
  MUSTER_EXPECT_TRUE (first.mtime_us >= began_us && first.mtime_us <= g_get_real_time ());
}

MUSTER_TEST (PeerStorage, is_off_unless_the_server_has_memory_for_it)
{
  g_auto (Peer) f = set_up (0);
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_FALSE (write_file (&f, "file", 1, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_PERMISSION_DENIED);
  MUSTER_EXPECT_TRUE (error != NULL && strstr (error->message, "--checkpoint-memory") != NULL);
}

/* What a file that doesn't fit has taken is free again. */
MUSTER_TEST (PeerStorage, is_full_at_its_budget)
{
  g_auto (Peer) f = set_up (10 * MIB);
  g_autoptr (GError) error = NULL;
  guint64 before = 0, after = 1;
  MUSTER_EXPECT_TRUE (write_file (&f, "one", 5 * MIB, NULL));
  MUSTER_EXPECT_TRUE (muster_storage_free_space (f.storage, f.directory, &before, NULL));
  MUSTER_EXPECT_FALSE (write_file (&f, "two", 6 * MIB, &error));
  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_NO_SPACE);
  MUSTER_EXPECT_TRUE (muster_storage_free_space (f.storage, f.directory, &after, NULL));
  MUSTER_EXPECT_EQ (after, before);
  MUSTER_EXPECT_TRUE (before < 5 * MIB);
}

MUSTER_TEST (PeerStorage, refuses_paths_that_lead_elsewhere)
{
  g_auto (Peer) f = set_up (MIB);
  const char *const names[] = {"../other", "a//b", "./a"};
  for (gsize i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autofree char *path = g_strdup_printf ("%s/%s", f.directory, names[i]);
    g_autoptr (GError) error = NULL;
    MUSTER_EXPECT_NULL (muster_storage_create (f.storage, path, &error));
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  }
}

MUSTER_TEST (PeerStorage, is_an_outage_where_the_server_is_gone)
{
  g_auto (Peer) f = set_up (MIB);
  g_autoptr (GError) error = NULL;
  g_clear_pointer (&f.server, muster_server_free);
  MUSTER_EXPECT_FALSE (write_file (&f, "file", 1, &error));
  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_HOST_UNREACHABLE);
}

MUSTER_TEST (PeerStorage, is_a_store_of_the_process_once_it_is_offered)
{
  g_auto (Peer) f = set_up (MIB);
  g_autofree char *path = path_of (&f, "file");
  g_autoptr (GError) error = NULL;
  MusterStorageInfo info;
  MUSTER_EXPECT_TRUE (write_file (&f, "file", 10, NULL));
  MUSTER_EXPECT_FALSE (muster_storage_stat (muster_default_storage (), path, &info, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_TRUE (strstr (error->message, "muster_peer_storage_offer ()") != NULL);
  muster_peer_storage_offer ();
  MUSTER_EXPECT_TRUE (muster_storage_stat (muster_default_storage (), path, &info, NULL));
}

/* Two runs with one name: the first one's, until its process ends. */
MUSTER_TEST (PeerStorage, is_held_by_one_process)
{
  g_auto (Peer) f = set_up (MIB);
  g_autoptr (MusterStorage) other = muster_peer_storage_new (NULL);
  g_autofree char *path = path_of (&f, ".hold");
  g_autoptr (GError) error = NULL;
  MusterStorageLock *first = muster_storage_lock (f.storage, path, MUSTER_LOCK_PROCESS, &error);
  MUSTER_EXPECT_NO_ERROR (error);

  MUSTER_EXPECT_NULL (muster_storage_lock (other, path, MUSTER_LOCK_PROCESS, &error));
  MUSTER_EXPECT_ERROR (error, G_IO_ERROR, G_IO_ERROR_BUSY);

  muster_storage_unlock (f.storage, first);
  MusterStorageLock *second = NULL;
  for (const gint64 end_us = test_deadline (); second == NULL && g_get_monotonic_time () < end_us;)
    second = muster_storage_lock (other, path, MUSTER_LOCK_PROCESS, NULL);
  MUSTER_EXPECT_TRUE (second != NULL);
  muster_storage_unlock (other, second);
}

/* --- a process that ends at one of its calls --- */

#define MUSTER_TYPE_ENDING_STORAGE (muster_ending_storage_get_type ())
G_DECLARE_FINAL_TYPE (MusterEndingStorage, muster_ending_storage, MUSTER, ENDING_STORAGE,
                      MusterForwardingStorage)

struct _MusterEndingStorage {
  MusterForwardingStorage parent;
  guint calls_left; /* 0: it doesn't end */
  gboolean has_effect, has_ended;
  GPtrArray *left; /* (element-type MusterStorageFile) what a killed process leaves open */
};

static void ending_storage_iface_init (MusterStorageInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (MusterEndingStorage, muster_ending_storage,
                               MUSTER_TYPE_FORWARDING_STORAGE,
                               G_IMPLEMENT_INTERFACE (MUSTER_TYPE_STORAGE,
                                                      ending_storage_iface_init))

static gboolean
ended (GError **error)
{
  g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_FAILED, "this process has ended");
  return FALSE;
}

/* *is_last: it is done, and then fails. */
static gboolean
may_go_on (MusterEndingStorage *self, gboolean *is_last, GError **error)
{
  *is_last = FALSE;
  if (self->has_ended)
    return ended (error);
  if (self->calls_left == 0 || --self->calls_left > 0)
    return TRUE;
  self->has_ended = TRUE;
  *is_last = self->has_effect;
  return *is_last || ended (error);
}

#define INNER(self) muster_forwarding_storage_inner (MUSTER_FORWARDING_STORAGE (self))

static MusterStorageFile *
ending_create (MusterStorage *self, const char *path, GError **error)
{
  gboolean is_last;
  if (!may_go_on (MUSTER_ENDING_STORAGE (self), &is_last, error))
    return NULL;
  MusterStorageFile *file = muster_storage_create (INNER (self), path, error);
  if (file != NULL && is_last) {
    ended (error);
    g_ptr_array_add (MUSTER_ENDING_STORAGE (self)->left, file);
    return NULL;
  }
  return file;
}

static gboolean
ending_close (MusterStorage *self, MusterStorageFile *file, GError **error)
{
  gboolean is_last;
  if (!may_go_on (MUSTER_ENDING_STORAGE (self), &is_last, error)) {
    g_ptr_array_add (MUSTER_ENDING_STORAGE (self)->left, file);
    return FALSE;
  }
  return muster_storage_close (INNER (self), file, error) && (!is_last || ended (error));
}

static void
ending_abandon (MusterStorage *self, MusterStorageFile *file)
{
  if (MUSTER_ENDING_STORAGE (self)->has_ended)
    g_ptr_array_add (MUSTER_ENDING_STORAGE (self)->left, file);
  else
    muster_storage_abandon (INNER (self), file);
}

static gboolean
ending_remove (MusterStorage *self, const char *path, GError **error)
{
  gboolean is_last;
  return may_go_on (MUSTER_ENDING_STORAGE (self), &is_last, error) &&
         muster_storage_remove (INNER (self), path, error) && (!is_last || ended (error));
}

static gboolean
ending_copy (MusterStorage *self, const char *from, const char *to, GError **error)
{
  gboolean is_last;
  return may_go_on (MUSTER_ENDING_STORAGE (self), &is_last, error) &&
         muster_storage_copy (INNER (self), from, to, error) && (!is_last || ended (error));
}

static gboolean
ending_replace (MusterStorage *self, const char *path, const void *data, gsize size,
                const char *version, char **new_version, GError **error)
{
  gboolean is_last;
  return may_go_on (MUSTER_ENDING_STORAGE (self), &is_last, error) &&
         muster_storage_replace (INNER (self), path, data, size, version, new_version, error) &&
         (!is_last || ended (error));
}

static void
ending_storage_iface_init (MusterStorageInterface *iface)
{
  iface->create = ending_create;
  iface->close = ending_close;
  iface->abandon = ending_abandon;
  iface->remove = ending_remove;
  iface->copy = ending_copy;
  iface->replace = ending_replace;
}

/* Only now, when all that the next process does was looked at. */
static void
ending_finalize (GObject *object)
{
  MusterEndingStorage *self = MUSTER_ENDING_STORAGE (object);
  for (guint i = 0; i < self->left->len; i++)
    muster_storage_abandon (INNER (self), self->left->pdata[i]);
  g_ptr_array_unref (self->left);
  G_OBJECT_CLASS (muster_ending_storage_parent_class)->finalize (object);
}

static void
muster_ending_storage_class_init (MusterEndingStorageClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = ending_finalize;
}

static void
muster_ending_storage_init (MusterEndingStorage *self)
{
  self->left = g_ptr_array_new ();
}

/* --- saves --- */

enum { OLD = 1, NEW = 2, NEXT = 3 };

static const MusterShardedModel model = {.is_whole = TRUE, .max_to_keep = 2};

/* The engine writes into the store itself. */
static ModelLife
live (MusterStorage *storage)
{
  ModelLife life = model_life_new (&model, &(MusterSaverOptions){.storage = storage}, NULL);
  model_life_claim (&life);
  return life;
}

static void
begin (const Peer *f)
{
  g_autoptr (GError) error = NULL;
  g_auto (ModelLife) life = live (f->storage);
  MUSTER_EXPECT_TRUE (model_life_save (&life, OLD, f->directory, 10, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

/* What the process that comes next finds, and makes. */
static void
expect_one_of (const Peer *f, int least)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterStorage) storage = muster_peer_storage_new (NULL);
  g_auto (ModelLife) life = live (storage);
  const int value = model_life_restore (&life, f->directory, &error);
  MUSTER_EXPECT_TRUE (value >= least && value <= NEW);
  MUSTER_EXPECT_TRUE (model_life_save (&life, NEXT, f->directory, 40, &error));
  MUSTER_EXPECT_EQ (model_life_restore (&life, f->directory, &error), NEXT);
  MUSTER_EXPECT_NO_ERROR (error);
  g_autofree char *fault = model_life_fault_of_listed (storage, f->directory);
  MUSTER_EXPECT_STREQ (fault, NULL);
}

/* Returns FALSE where the save has fewer calls. */
static gboolean
stop_at (guint n, gboolean has_effect)
{
  g_auto (Peer) f = set_up (100 * MIB);
  begin (&f);
  g_autoptr (MusterEndingStorage) ending = g_object_new (MUSTER_TYPE_ENDING_STORAGE, NULL);
  muster_forwarding_storage_set_inner (MUSTER_FORWARDING_STORAGE (ending), f.storage);
  gboolean saved;
  {
    g_auto (ModelLife) life = live (MUSTER_STORAGE (ending));
    MUSTER_EXPECT_EQ (model_life_restore (&life, f.directory, NULL), OLD);
    ending->calls_left = n;
    ending->has_effect = has_effect;
    saved = model_life_save (&life, NEW, f.directory, 20, NULL);
  }
  expect_one_of (&f, saved ? NEW : OLD);
  return ending->has_ended;
}

MUSTER_TEST (PeerSave, stopped_at_any_call_leaves_the_old_checkpoint_or_the_new_one)
{
  guint n = 1;
  while (stop_at (n, FALSE) && !muster_test_has_failed ()) {
    stop_at (n, TRUE);
    n++;
  }
  MUSTER_EXPECT_GT (n, 5u);
}

/* Its memory is gone: the directory is an empty one. */
MUSTER_TEST (PeerSave, goes_on_after_the_server_was_started_again)
{
  g_auto (Peer) f = set_up (100 * MIB);
  g_autoptr (GError) error = NULL;
  g_auto (ModelLife) life = live (f.storage);
  MUSTER_EXPECT_TRUE (model_life_save (&life, OLD, f.directory, 10, &error));
  g_autofree char *address =
      g_strndup (f.directory + strlen ("grpc://"),
                 strlen (f.directory) - strlen ("grpc://") - strlen ("/run"));
  g_clear_pointer (&f.server, muster_server_free);
  MUSTER_EXPECT_FALSE (model_life_save (&life, NEW, f.directory, 20, NULL));
  serve (&f, address, 100 * MIB);

  MUSTER_EXPECT_TRUE (model_life_save (&life, NEW, f.directory, 20, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (model_life_restore (&life, f.directory, NULL), NEW);
}

/* A save that doesn't fit fails for lack of space, and the one before it is still there. */
MUSTER_TEST (PeerSave, fails_where_the_memory_is_full)
{
  g_auto (Peer) f = set_up (512 << 10);
  static const MusterShardedModel large = {.is_whole = TRUE, .rows = 40000};
  g_autoptr (GError) error = NULL;
  begin (&f);
  {
    g_auto (ModelLife) life =
        model_life_new (&large, &(MusterSaverOptions){.storage = f.storage}, NULL);
    model_life_claim (&life);
    MUSTER_EXPECT_FALSE (model_life_save (&life, NEW, f.directory, 20, &error));
  }
  MUSTER_EXPECT_TRUE (error != NULL);
  g_auto (ModelLife) life = live (f.storage);
  MUSTER_EXPECT_EQ (model_life_restore (&life, f.directory, NULL), OLD);
}
