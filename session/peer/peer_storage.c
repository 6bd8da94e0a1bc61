// SPDX-License-Identifier: Apache-2.0
/* Each operation is a call of /muster.Files (rpc/proto/files.proto). A file is written through a
 * buffer of one block; an input keeps the block that was read last. */
#include "session/peer/peer_storage_private.h"

#include "base/crc32c_private.h"
#include "base/unpack_private.h"
#include "checkpoint/stores/default_storage.h"
#include "rpc/address_private.h"
#include "rpc/client/rpc_client_private.h"
#include "rpc/proto/files.pb-c.h"

#include <string.h>
#include <unistd.h>

#define BLOCK   ((gsize)4 << 20)
#define CALL_US (30 * MUSTER_SECOND) /* for one call, at most */

typedef Muster__FileRequest Request;
typedef Muster__FileResponse Response;

/* The connections of a store and of those that are bound to a deadline. */
typedef struct {
  gatomicrefcount refs;
  MusterRpcCredentials *credentials; /* (owned) (nullable) */
  char *who;                         /* (owned) this process */
  GMutex lock;
  GHashTable *clients; /* (owned) (element-type utf8 MusterRpcClient) guarded by lock */
} Connections;

G_DECLARE_FINAL_TYPE (MusterPeerStorage, muster_peer_storage, MUSTER, PEER_STORAGE, GObject)

struct _MusterPeerStorage {
  GObject parent;
  Connections *connections; /* (owned) */
  gint64 deadline_us;
  MusterClock *clock;        /* (owned) */
  GCancellable *cancellable; /* (owned) (nullable) */
};

/* Where a path leads. */
typedef struct {
  const char *path;
  MusterRpcClient *client; /* (owned) */
  const char *name;        /* in the server: NAME/FILE */
} Place;

struct _MusterStorageFile {
  char *path; /* (owned) */
  guint64 upload, offset;
  GByteArray *buffer; /* (owned) */
};

struct _MusterStorageInput {
  char *path; /* (owned) */
  guint64 size, version;
  GMutex lock;
  /* guarded by lock */
  guint64 offset; /* of the block */
  GBytes *block;  /* (owned) (nullable) */
};

struct _MusterStorageLock {
  MusterRpcStream *stream; /* (owned) (nullable) the server holds the path until it ends */
};

static void muster_peer_storage_iface_init (MusterStorageInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (MusterPeerStorage, muster_peer_storage, G_TYPE_OBJECT,
                               G_IMPLEMENT_INTERFACE (MUSTER_TYPE_STORAGE,
                                                      muster_peer_storage_iface_init))

/* --- connections --- */

static void
connections_unref (Connections *self)
{
  if (!g_atomic_ref_count_dec (&self->refs))
    return;
  g_hash_table_unref (self->clients);
  muster_rpc_credentials_unref (self->credentials);
  g_free (self->who);
  g_mutex_clear (&self->lock);
  g_free (self);
}

static MusterPeerStorage *
new_storage (Connections *connections, gint64 deadline_us, MusterClock *clock,
             GCancellable *cancellable)
{
  MusterPeerStorage *self = g_object_new (muster_peer_storage_get_type (), NULL);
  self->connections = connections;
  self->deadline_us = deadline_us;
  self->clock = g_object_ref (clock != NULL ? clock : muster_system_clock ());
  g_set_object (&self->cancellable, cancellable);
  return self;
}

MusterStorage *
muster_peer_storage_new (MusterRpcCredentials *credentials)
{
  Connections *connections = g_new0 (Connections, 1);
  g_atomic_ref_count_init (&connections->refs);
  connections->credentials = credentials != NULL ? muster_rpc_credentials_ref (credentials) : NULL;
  connections->who =
      g_strdup_printf ("%s:%d:%08x", g_get_host_name (), (int)getpid (),
                       (guint32)(muster_clock_random (muster_system_clock ()) * G_MAXUINT32));
  g_mutex_init (&connections->lock);
  connections->clients = g_hash_table_new_full (g_str_hash, g_str_equal, g_free,
                                                (GDestroyNotify)muster_rpc_client_unref);
  return MUSTER_STORAGE (new_storage (connections, MUSTER_WAIT_FOREVER, NULL, NULL));
}

static MusterStorage *
new_secured (gboolean tls, GError **error)
{
  const char *token = g_getenv ("MUSTER_STORE_TOKEN_FILE");
  const MusterRpcSecurity security = {
      .ca_file = tls ? g_getenv ("MUSTER_STORE_TLS_CA") : NULL, .token_file = token, .tls = tls};
  if (!tls && token == NULL)
    return muster_peer_storage_new (NULL);
  g_autoptr (MusterRpcCredentials) credentials = muster_rpc_credentials_new (&security, error);
  return credentials != NULL ? muster_peer_storage_new (credentials) : NULL;
}

static MusterStorage *
new_plain (GError **error)
{
  return new_secured (FALSE, error);
}

static MusterStorage *
new_tls (GError **error)
{
  return new_secured (TRUE, error);
}

void
muster_peer_storage_offer (void)
{
  muster_storage_offer ("grpc", new_plain);
  muster_storage_offer ("grpcs", new_tls);
}

static void
place_clear (Place *self)
{
  g_clear_pointer (&self->client, muster_rpc_client_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Place, place_clear)

static MusterRpcClient *
client_of (Connections *self, const char *address)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  MusterRpcClient *client = g_hash_table_lookup (self->clients, address);
  if (client == NULL) {
    client = muster_rpc_client_new (address, self->credentials);
    g_hash_table_insert (self->clients, g_strdup (address), client);
  }
  return muster_rpc_client_ref (client);
}

/* grpc://HOST:PORT/NAME… */
static gboolean
find (const MusterPeerStorage *self, const char *path, Place *place, GError **error)
{
  const char *start = strstr (path, "://");
  const char *address = start != NULL ? start + strlen ("://") : path;
  const char *slash = strchr (address, '/');
  g_autofree char *host_and_port =
      slash != NULL ? g_strndup (address, (gsize)(slash - address)) : g_strdup (address);
  if (slash == NULL || slash[1] == '\0' || slash[1] == '/')
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "invalid path '%s' (use grpc://HOST:PORT/NAME)", path);
  if (!muster_address_check (host_and_port, error))
    return FALSE;
  *place = (Place){path, client_of (self->connections, host_and_port), slash + 1};
  return TRUE;
}

/* --- calls --- */

/* A call's failure as a store's. Always returns NULL. */
static gpointer
fail (const char *path, GError *why, GError **error)
{
  g_autoptr (GError) own = why;
  const gboolean is_absent = muster_error_is (why, MUSTER_ERROR_NOT_FOUND);
  if (is_absent || muster_error_is (why, MUSTER_ERROR_RESOURCE_EXHAUSTED))
    g_set_error (error, G_IO_ERROR, is_absent ? G_IO_ERROR_NOT_FOUND : G_IO_ERROR_NO_SPACE,
                 "'%s': %s", path, why->message);
  else
    g_propagate_prefixed_error (error, g_steal_pointer (&own), "'%s': ", path);
  return NULL;
}

static gint64
call_deadline (const MusterPeerStorage *self)
{
  const gint64 left_us =
      self->deadline_us == MUSTER_WAIT_FOREVER
          ? CALL_US
          : muster_deadline_remaining (self->deadline_us, muster_clock_now_us (self->clock));
  return muster_deadline_after (muster_clock_now_us (muster_system_clock ()),
                                CLAMP (left_us, 1, CALL_US));
}

/* NULL with an error. */
static const Response *
call (const MusterPeerStorage *self, const Place *place, const char *method, Request *request,
      MusterArena *arena, GError **error)
{
  const MusterRpcOptions options = {.deadline_us = call_deadline (self)};
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  g_autofree char *full = g_strconcat ("/muster.Files/", method, NULL);
  GError *why = NULL;
  request->who = self->connections->who;
  /* gRPC waits between two attempts to connect; a server that is back is asked at once. */
  (void)muster_rpc_client_reach (place->client, options.deadline_us, self->cancellable);
  g_autoptr (GBytes) packed = muster_pack (&request->base);
  muster_rope_append (&rope, packed);
  g_autoptr (GBytes) answer =
      muster_rpc_client_call (place->client, full, &rope, &options, self->cancellable, &why);
  if (answer == NULL)
    return fail (place->path, why, error);
  gsize size;
  const void *data = g_bytes_get_data (answer, &size);
  const Response *response =
      muster_unpack (&muster__file_response__descriptor, data, size, arena, "FileResponse", &why);
  return response != NULL ? response : fail (place->path, why, error);
}

/* A call about a path, whose answer doesn't matter. */
static gboolean
call_path (MusterStorage *self, const char *path, const char *method, Request *request,
           GError **error)
{
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_auto (Place) place = {0};
  if (!find (MUSTER_PEER_STORAGE (self), path, &place, error))
    return FALSE;
  request->path = (char *)place.name;
  return call (MUSTER_PEER_STORAGE (self), &place, method, request, arena, error) != NULL;
}

/* --- writing --- */

static MusterStorageFile *
peer_create (MusterStorage *self, const char *path, GError **error)
{
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_auto (Place) place = {0};
  Request request = MUSTER__FILE_REQUEST__INIT;
  if (!find (MUSTER_PEER_STORAGE (self), path, &place, error))
    return NULL;
  request.path = (char *)place.name;
  const Response *response =
      call (MUSTER_PEER_STORAGE (self), &place, "Create", &request, arena, error);
  if (response == NULL)
    return NULL;
  MusterStorageFile *file = g_new0 (MusterStorageFile, 1);
  file->path = g_strdup (path);
  file->upload = response->upload;
  file->buffer = g_byte_array_new ();
  return file;
}

static gboolean
peer_reserve (MusterStorage *self, MusterStorageFile *file, guint64 size, GError **error)
{
  guint64 free_bytes;
  if (!muster_storage_free_space (self, file->path, &free_bytes, error))
    return FALSE;
  if (size <= free_bytes)
    return TRUE;
  g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_NOSPC,
               "'%s': the server's memory for checkpoints is full", file->path);
  return FALSE;
}

static gboolean
send_block (MusterStorage *self, MusterStorageFile *file, const void *data, gsize size,
            GError **error)
{
  Request request = MUSTER__FILE_REQUEST__INIT;
  request.upload = file->upload;
  request.offset = file->offset;
  request.data.data = (guint8 *)data;
  request.data.len = size;
  request.crc32c = muster_crc32c_extend (0, data, size);
  if (!call_path (self, file->path, "Append", &request, error))
    return FALSE;
  file->offset += size;
  return TRUE;
}

static gboolean
flush (MusterStorage *self, MusterStorageFile *file, GError **error)
{
  if (file->buffer->len == 0)
    return TRUE;
  const gboolean is_sent = send_block (self, file, file->buffer->data, file->buffer->len, error);
  g_byte_array_set_size (file->buffer, 0);
  return is_sent;
}

static gboolean
peer_append (MusterStorage *self, MusterStorageFile *file, const void *data, gsize size,
             GError **error)
{
  const guint8 *at = data;
  while (size > 0) {
    const gsize n = MIN (size, BLOCK - file->buffer->len);
    g_byte_array_append (file->buffer, at, (guint)n);
    at += n;
    size -= n;
    if (file->buffer->len == BLOCK && !flush (self, file, error))
      return FALSE;
  }
  return TRUE;
}

/* A file is there once it is closed. */
static gboolean
peer_sync (MusterStorage *self G_GNUC_UNUSED, MusterStorageFile *file G_GNUC_UNUSED,
           GError **error G_GNUC_UNUSED)
{
  return TRUE;
}

static void
file_free (MusterStorageFile *file)
{
  g_byte_array_unref (file->buffer);
  g_free (file->path);
  g_free (file);
}

static void
peer_abandon (MusterStorage *self, MusterStorageFile *file)
{
  Request request = MUSTER__FILE_REQUEST__INIT;
  request.upload = file->upload;
  (void)call_path (self, file->path, "Abandon", &request, NULL);
  file_free (file);
}

static gboolean
peer_close (MusterStorage *self, MusterStorageFile *file, GError **error)
{
  Request request = MUSTER__FILE_REQUEST__INIT;
  request.upload = file->upload;
  if (!flush (self, file, error) || !call_path (self, file->path, "Close", &request, error)) {
    peer_abandon (self, file);
    return FALSE;
  }
  file_free (file);
  return TRUE;
}

/* --- reading --- */

static const Response *
stat_path (MusterStorage *self, const char *path, MusterArena *arena, GError **error)
{
  g_auto (Place) place = {0};
  Request request = MUSTER__FILE_REQUEST__INIT;
  if (!find (MUSTER_PEER_STORAGE (self), path, &place, error))
    return NULL;
  request.path = (char *)place.name;
  return call (MUSTER_PEER_STORAGE (self), &place, "Stat", &request, arena, error);
}

static MusterStorageInput *
peer_open (MusterStorage *self, const char *path, guint64 *size, GError **error)
{
  g_autoptr (MusterArena) arena = muster_arena_new ();
  const Response *response = stat_path (self, path, arena, error);
  if (response == NULL)
    return NULL;
  MusterStorageInput *input = g_new0 (MusterStorageInput, 1);
  input->path = g_strdup (path);
  input->size = *size = response->size;
  input->version = response->version;
  g_mutex_init (&input->lock);
  return input;
}

static GBytes *
fetch_block (MusterStorage *self, const MusterStorageInput *input, guint64 offset, GError **error)
{
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_auto (Place) place = {0};
  Request request = MUSTER__FILE_REQUEST__INIT;
  if (!find (MUSTER_PEER_STORAGE (self), input->path, &place, error))
    return NULL;
  request.path = (char *)place.name;
  request.version = input->version;
  request.offset = offset;
  const Response *response =
      call (MUSTER_PEER_STORAGE (self), &place, "Read", &request, arena, error);
  if (response == NULL)
    return NULL;
  const gsize wanted = MIN (BLOCK, input->size - offset);
  if (response->data.len == wanted &&
      muster_crc32c_extend (0, response->data.data, wanted) == response->crc32c)
    return g_bytes_new (response->data.data, wanted);
  muster_fail (error, MUSTER_ERROR_DATA_LOSS,
               "'%s': the block at %" G_GUINT64_FORMAT " has another checksum", input->path,
               offset);
  return NULL;
}

/* The block at that offset: the last one that was read, if it is that (transfer full). */
static GBytes *
block_at (MusterStorage *self, MusterStorageInput *input, guint64 offset, GError **error)
{
  g_mutex_lock (&input->lock);
  GBytes *block =
      input->block != NULL && input->offset == offset ? g_bytes_ref (input->block) : NULL;
  g_mutex_unlock (&input->lock);
  if (block != NULL)
    return block;
  block = fetch_block (self, input, offset, error);
  if (block == NULL)
    return NULL;
  g_mutex_lock (&input->lock);
  g_clear_pointer (&input->block, g_bytes_unref);
  input->block = g_bytes_ref (block);
  input->offset = offset;
  g_mutex_unlock (&input->lock);
  return block;
}

static gssize
peer_read_at (MusterStorage *self, MusterStorageInput *input, guint64 offset, void *buffer,
              gsize size, GError **error)
{
  gsize filled = 0;
  while (filled < size && offset + filled < input->size) {
    const guint64 at = offset + filled;
    g_autoptr (GBytes) block = block_at (self, input, at - at % BLOCK, error);
    if (block == NULL)
      return -1;
    gsize n;
    const guint8 *data = g_bytes_get_data (block, &n);
    n = MIN (n - at % BLOCK, size - filled);
    memcpy ((guint8 *)buffer + filled, data + at % BLOCK, n);
    filled += n;
  }
  return (gssize)filled;
}

static void
peer_close_input (MusterStorage *self G_GNUC_UNUSED, MusterStorageInput *input)
{
  g_clear_pointer (&input->block, g_bytes_unref);
  g_mutex_clear (&input->lock);
  g_free (input->path);
  g_free (input);
}

/* --- names --- */

static gboolean
peer_rename (MusterStorage *self G_GNUC_UNUSED, const char *from, const char *to, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED,
                      "'%s': an object store can't rename it to '%s'; copy it", from, to);
}

static gboolean
peer_remove (MusterStorage *self, const char *path, GError **error)
{
  Request request = MUSTER__FILE_REQUEST__INIT;
  return call_path (self, path, "Remove", &request, error);
}

static char **
peer_list (MusterStorage *self, const char *directory, GError **error)
{
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_auto (Place) place = {0};
  Request request = MUSTER__FILE_REQUEST__INIT;
  if (!find (MUSTER_PEER_STORAGE (self), directory, &place, error))
    return NULL;
  request.path = (char *)place.name;
  const Response *response =
      call (MUSTER_PEER_STORAGE (self), &place, "List", &request, arena, error);
  if (response == NULL)
    return NULL;
  g_autoptr (GStrvBuilder) names = g_strv_builder_new ();
  for (gsize i = 0; i < response->n_names; i++)
    g_strv_builder_add (names, response->names[i]);
  return g_strv_builder_end (names);
}

static gboolean
peer_stat (MusterStorage *self, const char *path, MusterStorageInfo *info, GError **error)
{
  g_autoptr (MusterArena) arena = muster_arena_new ();
  const Response *response = stat_path (self, path, arena, error);
  if (response != NULL)
    *info = (MusterStorageInfo){response->size, response->time_us};
  return response != NULL;
}

static gboolean
peer_sync_directory (MusterStorage *self G_GNUC_UNUSED, const char *directory G_GNUC_UNUSED,
                     GError **error G_GNUC_UNUSED)
{
  return TRUE;
}

static gboolean
peer_free_space (MusterStorage *self, const char *directory, guint64 *bytes, GError **error)
{
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_auto (Place) place = {0};
  Request request = MUSTER__FILE_REQUEST__INIT;
  if (!find (MUSTER_PEER_STORAGE (self), directory, &place, error))
    return FALSE;
  const Response *response =
      call (MUSTER_PEER_STORAGE (self), &place, "Space", &request, arena, error);
  if (response != NULL)
    *bytes = response->free;
  return response != NULL;
}

/* --- locks: those of a process alone --- */

static MusterRpcStream *
open_hold (const MusterPeerStorage *self, const Place *place, GError **error)
{
  const MusterRpcOptions options = {.deadline_us = MUSTER_WAIT_FOREVER};
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  Request request = MUSTER__FILE_REQUEST__INIT;
  request.path = (char *)place->name;
  request.who = self->connections->who;
  g_autoptr (GBytes) packed = muster_pack (&request.base);
  muster_rope_append (&rope, packed);
  (void)muster_rpc_client_reach (place->client, call_deadline (self), self->cancellable);
  g_autoptr (MusterRpcStream) stream =
      muster_rpc_client_open (place->client, "/muster.Files/Hold", &rope, &options, error);
  g_autoptr (GBytes) granted =
      stream != NULL
          ? muster_rpc_stream_next_until (stream, call_deadline (self), self->cancellable, error)
          : NULL;
  return granted != NULL ? g_steal_pointer (&stream) : NULL;
}

static MusterStorageLock *
peer_lock (MusterStorage *self, const char *path, MusterLockMode mode, GError **error)
{
  g_auto (Place) place = {0};
  GError *why = NULL;
  MusterRpcStream *stream = NULL;
  if (!find (MUSTER_PEER_STORAGE (self), path, &place, error))
    return NULL;
  if (mode == MUSTER_LOCK_PROCESS || mode == MUSTER_LOCK_PROCESS_SHARED) {
    stream = open_hold (MUSTER_PEER_STORAGE (self), &place, &why);
    if (stream == NULL && muster_error_is (why, MUSTER_ERROR_FAILED_PRECONDITION)) {
      g_set_error (error, G_IO_ERROR, G_IO_ERROR_BUSY, "'%s': %s", path, why->message);
      g_error_free (why);
      return NULL;
    }
    if (stream == NULL)
      return fail (path, why, error);
  }
  MusterStorageLock *lock = g_new (MusterStorageLock, 1);
  lock->stream = stream;
  return lock;
}

static void
peer_unlock (MusterStorage *self G_GNUC_UNUSED, MusterStorageLock *lock)
{
  muster_rpc_stream_free (lock->stream);
  g_free (lock);
}

static gboolean
peer_takes (MusterStorage *self G_GNUC_UNUSED, const char *path)
{
  return g_str_has_prefix (path, "grpc://") || g_str_has_prefix (path, "grpcs://");
}

/* --- an object store's --- */

static gboolean
peer_can_rename (MusterStorage *self G_GNUC_UNUSED, const char *path G_GNUC_UNUSED)
{
  return FALSE;
}

static gboolean
peer_copy (MusterStorage *self, const char *from, const char *to, GError **error)
{
  g_auto (Place) source = {0}, target = {0};
  Request request = MUSTER__FILE_REQUEST__INIT;
  if (!find (MUSTER_PEER_STORAGE (self), from, &source, error) ||
      !find (MUSTER_PEER_STORAGE (self), to, &target, error))
    return FALSE;
  if (source.client != target.client) {
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
                 "'%s' and '%s' are in different servers", from, to);
    return FALSE;
  }
  request.to = (char *)target.name;
  return call_path (self, from, "Copy", &request, error);
}

static GBytes *
peer_read_versioned (MusterStorage *self, const char *path, char **version, GError **error)
{
  guint64 size;
  MusterStorageInput *input = peer_open (self, path, &size, error);
  if (input == NULL)
    return NULL;
  GBytes *bytes = muster_storage_read_bytes_at (self, input, 0, size, error);
  if (bytes != NULL)
    *version = g_strdup_printf ("%" G_GUINT64_FORMAT, input->version);
  peer_close_input (self, input);
  return bytes;
}

static gboolean
peer_replace (MusterStorage *self, const char *path, const void *data, gsize size,
              const char *version, char **new_version, GError **error)
{
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_auto (Place) place = {0};
  Request request = MUSTER__FILE_REQUEST__INIT;
  if (!find (MUSTER_PEER_STORAGE (self), path, &place, error))
    return FALSE;
  request.path = (char *)place.name;
  request.data.data = (guint8 *)data;
  request.data.len = size;
  request.crc32c = muster_crc32c_extend (0, data, size);
  request.has_version = version != NULL;
  request.version = version != NULL ? g_ascii_strtoull (version, NULL, 10) : 0;
  const Response *response =
      call (MUSTER_PEER_STORAGE (self), &place, "Replace", &request, arena, error);
  if (response != NULL)
    *new_version = g_strdup_printf ("%" G_GUINT64_FORMAT, response->version);
  return response != NULL;
}

static gboolean
peer_sweep (MusterStorage *self, const char *directory, gint64 before_us, GError **error)
{
  Request request = MUSTER__FILE_REQUEST__INIT;
  request.before_us = before_us;
  return call_path (self, directory, "Sweep", &request, error);
}

static MusterStorage *
peer_bound (MusterStorage *storage, gint64 deadline_us, MusterClock *clock,
            GCancellable *cancellable)
{
  Connections *connections = MUSTER_PEER_STORAGE (storage)->connections;
  g_atomic_ref_count_inc (&connections->refs);
  return MUSTER_STORAGE (new_storage (connections, deadline_us, clock, cancellable));
}

static void
muster_peer_storage_iface_init (MusterStorageInterface *iface)
{
  iface->create = peer_create;
  iface->reserve = peer_reserve;
  iface->append = peer_append;
  iface->sync = peer_sync;
  iface->close = peer_close;
  iface->abandon = peer_abandon;
  iface->open = peer_open;
  iface->read_at = peer_read_at;
  iface->close_input = peer_close_input;
  iface->rename = peer_rename;
  iface->remove = peer_remove;
  iface->list = peer_list;
  iface->stat = peer_stat;
  iface->sync_directory = peer_sync_directory;
  iface->free_space = peer_free_space;
  iface->lock = peer_lock;
  iface->unlock = peer_unlock;
  iface->takes = peer_takes;
  iface->can_rename = peer_can_rename;
  iface->copy = peer_copy;
  iface->read_versioned = peer_read_versioned;
  iface->replace = peer_replace;
  iface->sweep = peer_sweep;
  iface->bound = peer_bound;
}

static void
muster_peer_storage_finalize (GObject *object)
{
  MusterPeerStorage *self = MUSTER_PEER_STORAGE (object);
  connections_unref (self->connections);
  g_object_unref (self->clock);
  g_clear_object (&self->cancellable);
  G_OBJECT_CLASS (muster_peer_storage_parent_class)->finalize (object);
}

static void
muster_peer_storage_class_init (MusterPeerStorageClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = muster_peer_storage_finalize;
}

static void
muster_peer_storage_init (MusterPeerStorage *self G_GNUC_UNUSED)
{
}
