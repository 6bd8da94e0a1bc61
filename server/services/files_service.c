// SPDX-License-Identifier: Apache-2.0
/* The methods of /muster.Files: each reads its request, calls its function of MusterHeldFiles, and
 * replies. */
#include "server/services/files_service.h"

#include "rpc/proto/files.pb-c.h"
#include "server/core/held_files.h"
#include "server/core/server_private.h"
#include "server/core/service.h"

typedef Muster__FileRequest Request;
typedef Muster__FileResponse Response;

/* A block of a message. */
static MusterHeldBlock
block_of (const Request *request)
{
  return (MusterHeldBlock){g_bytes_new (request->data.data, request->data.len), request->crc32c};
}

static gboolean
create (MusterHeldFiles *files, const Request *request, Response *response, GError **error)
{
  response->upload = muster_held_files_create (files, request->path, request->who, error);
  return response->upload != 0;
}

static gboolean
append (MusterHeldFiles *files, const Request *request, Response *response G_GNUC_UNUSED,
        GError **error)
{
  const MusterHeldBlock block = block_of (request);
  const gboolean is_appended =
      muster_held_files_append (files, request->upload, request->offset, &block, error);
  g_bytes_unref (block.bytes);
  return is_appended;
}

static gboolean
close_upload (MusterHeldFiles *files, const Request *request, Response *response G_GNUC_UNUSED,
              GError **error)
{
  return muster_held_files_close (files, request->upload, error);
}

static gboolean
abandon (MusterHeldFiles *files, const Request *request, Response *response G_GNUC_UNUSED,
         GError **error G_GNUC_UNUSED)
{
  muster_held_files_abandon (files, request->upload);
  return TRUE;
}

static gboolean
replace (MusterHeldFiles *files, const Request *request, Response *response, GError **error)
{
  const MusterHeldBlock block = block_of (request);
  const guint64 version = request->version;
  response->version = muster_held_files_replace (files, request->path, &block,
                                                 request->has_version ? &version : NULL, error);
  g_bytes_unref (block.bytes);
  return response->version != 0;
}

static gboolean
stat_file (MusterHeldFiles *files, const Request *request, Response *response, GError **error)
{
  MusterHeldInfo info;
  if (!muster_held_files_stat (files, request->path, &info, error))
    return FALSE;
  response->size = info.size;
  response->version = info.version;
  response->time_us = info.time_us;
  return TRUE;
}

/* The block is referenced until the reply is packed. */
static gboolean
read_block (MusterHeldFiles *files, const Request *request, Response *response, GError **error)
{
  MusterHeldBlock block;
  if (!muster_held_files_read (files, request->path, request->version, request->offset, &block,
                               error))
    return FALSE;
  response->data.data = g_bytes_unref_to_data (block.bytes, &response->data.len);
  response->crc32c = block.crc32c;
  return TRUE;
}

static gboolean
list (MusterHeldFiles *files, const Request *request, Response *response, GError **error)
{
  response->names = muster_held_files_list (files, request->path, error);
  response->n_names = response->names != NULL ? g_strv_length (response->names) : 0;
  return response->names != NULL;
}

static gboolean
remove_file (MusterHeldFiles *files, const Request *request, Response *response G_GNUC_UNUSED,
             GError **error)
{
  return muster_held_files_remove (files, request->path, error);
}

static gboolean
copy (MusterHeldFiles *files, const Request *request, Response *response G_GNUC_UNUSED,
      GError **error)
{
  return muster_held_files_copy (files, request->path, request->to, error);
}

static gboolean
sweep (MusterHeldFiles *files, const Request *request, Response *response G_GNUC_UNUSED,
       GError **error)
{
  return muster_held_files_sweep (files, request->path, request->who, request->before_us, error);
}

static gboolean
space (MusterHeldFiles *files, const Request *request G_GNUC_UNUSED, Response *response,
       GError **error)
{
  return muster_held_files_space (files, &response->free, error);
}

typedef gboolean (*Work) (MusterHeldFiles *files, const Request *request, Response *response,
                          GError **error);

static void
serve (MusterRpcCall *call, GBytes *bytes, MusterServer *server, Work work)
{
  g_autoptr (MusterArena) arena = muster_arena_new ();
  g_autoptr (GError) error = NULL;
  Response response = MUSTER__FILE_RESPONSE__INIT;
  const Request *request =
      muster_server_unpack (call, bytes, &muster__file_request__descriptor, arena);
  if (request == NULL)
    return;
  if (work (server->files, request, &response, &error))
    muster_server_reply (call, &response.base);
  else
    muster_rpc_call_finish (call, error);
  g_strfreev (response.names);
  g_free (response.data.data);
}

#define METHOD(name, work)                                                                         \
  static void name (MusterRpcCall *call, GBytes *bytes, gpointer data)                             \
  {                                                                                                \
    serve (call, bytes, data, work);                                                               \
  }

METHOD (on_create, create)
METHOD (on_append, append)
METHOD (on_close, close_upload)
METHOD (on_abandon, abandon)
METHOD (on_replace, replace)
METHOD (on_stat, stat_file)
METHOD (on_read, read_block)
METHOD (on_list, list)
METHOD (on_remove, remove_file)
METHOD (on_copy, copy)
METHOD (on_sweep, sweep)
METHOD (on_space, space)

/* --- holding --- */

/* The caller of a stream that holds a path. */
typedef struct {
  MusterHeldFiles *files;    /* (not owned) */
  char *path;                /* (owned) */
  const MusterRpcCall *call; /* (not owned) only compared */
} Caller;

static void
caller_free (gpointer data)
{
  g_free (((Caller *)data)->path);
  g_free (data);
}

static void
on_caller_gone (GCancellable *cancellable G_GNUC_UNUSED, gpointer data)
{
  const Caller *caller = data;
  muster_held_files_let_go (caller->files, caller->path, caller->call);
}

/* Ends a stream that holds no more. */
static void
end_hold (gpointer call)
{
  g_autoptr (GError) error =
      g_error_new_literal (MUSTER_ERROR, MUSTER_ERROR_CANCELLED, "the hold has ended");
  muster_rpc_call_finish (call, error);
  muster_rpc_call_unref (call);
}

/* Keeps the call until its caller is gone. Nothing blocks. */
static void
open_hold (MusterServer *server, MusterRpcCall *call, const Request *request)
{
  g_autoptr (MusterRpcCall) held = muster_rpc_call_ref (call);
  g_autoptr (GError) error = NULL;
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  Response response = MUSTER__FILE_RESPONSE__INIT;
  MusterRpcCall *token = muster_rpc_call_ref (call);
  if (!muster_held_files_hold (server->files, request->path, request->who, token, end_hold,
                               &error)) {
    muster_rpc_call_unref (token);
    muster_rpc_call_finish (call, error);
    return;
  }
  g_autoptr (GBytes) packed = muster_pack (&response.base);
  muster_rope_append (&rope, packed);
  muster_rpc_call_send (call, &rope);
  Caller *caller = g_new (Caller, 1);
  *caller = (Caller){server->files, g_strdup (request->path), call};
  g_cancellable_connect (muster_rpc_call_cancellable (call), G_CALLBACK (on_caller_gone), caller,
                         caller_free);
}

static void
on_hold (MusterRpcCall *call, GBytes *bytes, gpointer data)
{
  g_autoptr (MusterArena) arena = muster_arena_new ();
  const Request *request =
      muster_server_unpack (call, bytes, &muster__file_request__descriptor, arena);
  if (request != NULL)
    open_hold (data, call, request);
}

void
muster_files_service_stop (MusterServer *server)
{
  muster_held_files_end_holds (server->files);
}

static const struct {
  const char *path;
  MusterRpcHandler handler;
} methods[] = {
    {"/muster.Files/Create", on_create},   {"/muster.Files/Append", on_append},
    {"/muster.Files/Close", on_close},     {"/muster.Files/Abandon", on_abandon},
    {"/muster.Files/Replace", on_replace}, {"/muster.Files/Stat", on_stat},
    {"/muster.Files/Read", on_read},       {"/muster.Files/List", on_list},
    {"/muster.Files/Remove", on_remove},   {"/muster.Files/Copy", on_copy},
    {"/muster.Files/Sweep", on_sweep},     {"/muster.Files/Space", on_space},
};

void
muster_files_service_enter (MusterServer *server)
{
  for (gsize i = 0; i < G_N_ELEMENTS (methods); i++)
    muster_server_add_method (server, methods[i].path, methods[i].handler);
  muster_rpc_server_add_method (server->rpc, "/muster.Files/Hold", on_hold, server);
}
