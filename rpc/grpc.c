// SPDX-License-Identifier: Apache-2.0
/* What clients and servers need of gRPC's core: initialisation, processes that were forked,
 * messages without copies, deadlines, and details of a status. */
#include "rpc/grpc_private.h"

#include "base/log_private.h"
#include "base/memory_private.h"
#include "base/protowire_private.h"
#include "rpc/fork_private.h"

#include <grpc/support/log.h>
#include <grpc/support/time.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Below this a copy is cheaper than a reference, and doesn't pin a larger buffer. */
#define MIN_REFERENCE 4096

#define MAX_STATUS_TEXT    4096
#define MAX_STATUS_ESCAPED 6000 /* of the 8 KB that gRPC gives all of a call's metadata */

/* A peer that speaks no TLS, or has no certificate that is trusted. gRPC says nothing else of it.
 */
static gboolean
log_handshake (const char *text)
{
  static MusterLogLimit limit;
  char left_out[MUSTER_LOG_COUNT_SIZE];
  if (!g_str_has_prefix (text, "Handshake failed"))
    return FALSE;
  if (!muster_log_bounded (G_LOG_LEVEL_INFO, &limit, left_out))
    return TRUE;
  const char *colon = strstr (text, "::"); /* "…:SSL routines::wrong version number." */
  muster_log (G_LOG_LEVEL_INFO, "handshake-failed", "MUSTER_LEFT_OUT", left_out, "MESSAGE",
              "TLS handshake failed: %s", colon != NULL ? colon + 2 : text);
  return TRUE;
}

static void
log_as_debug (gpr_log_func_args *args)
{
  if (log_handshake (args->message))
    return;
  muster_log (G_LOG_LEVEL_DEBUG, "grpc", "MESSAGE", "gRPC: %s:%d: %s", args->file, args->line,
              args->message);
}

/* OpenSSL calls this for each SSL_CTX it creates. Connections inherit its mode: 33 KB of buffers
 * are freed while nothing is sent or received. gRPC neither sets that nor gives access to its
 * contexts. A hook on SSL doesn't work: OpenSSL 3.5 calls hooks of one that isn't initialised yet.
 */
static void
save_memory (void *context, void *ours G_GNUC_UNUSED, CRYPTO_EX_DATA *data G_GNUC_UNUSED,
             int index G_GNUC_UNUSED, long number G_GNUC_UNUSED, void *pointer G_GNUC_UNUSED)
{
  SSL_CTX_set_mode (context, SSL_MODE_RELEASE_BUFFERS);
}

void
muster_openssl_init (void)
{
  /* gRPC's threads may be in a handshake while the process exits: OpenSSL must not be cleaned up
   * before them. */
  (void)OPENSSL_init_crypto (OPENSSL_INIT_NO_ATEXIT, NULL);
}

static gint is_forked; /* atomic */

static void
note_fork (void)
{
  g_atomic_int_set (&is_forked, TRUE);
}

gboolean
muster_rpc_is_forked (void)
{
  return g_atomic_int_get (&is_forked);
}

gboolean
muster_rpc_check_process (GError **error)
{
  return !muster_rpc_is_forked () ||
         muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                      "this process was forked from one that uses gRPC, which doesn't work in it; "
                      "fork before the first call to a server, or start a program of its own "
                      "(in Python: multiprocessing's \"spawn\")");
}

void
muster_grpc_init (void)
{
  static gsize once;
  if (!g_once_init_enter (&once))
    return;
  if (g_getenv ("GRPC_VERBOSITY") == NULL)
    gpr_set_log_function (log_as_debug);
  muster_openssl_init ();
  (void)pthread_atfork (NULL, NULL, note_fork); /* fails only for lack of memory */
  grpc_init ();
  if (SSL_CTX_get_ex_new_index (0, NULL, save_memory, NULL, NULL) < 0)
    muster_log (G_LOG_LEVEL_DEBUG, "tls", "MESSAGE",
                "TLS connections keep their buffers: OpenSSL takes no more hooks");
  g_once_init_leave (&once, 1);
}

void
muster_grpc_serve (grpc_completion_queue *queue)
{
  for (;;) {
    grpc_event event =
        grpc_completion_queue_next (queue, gpr_inf_future (GPR_CLOCK_MONOTONIC), NULL);
    if (event.type == GRPC_QUEUE_SHUTDOWN)
      return;
    MusterRpcTag *tag = event.tag;
    tag->done (tag->owner, event.success);
  }
}

grpc_arg
muster_grpc_arg (const char *key, int value)
{
  return (grpc_arg){.type = GRPC_ARG_INTEGER, .key = (char *)key, .value.integer = value};
}

gboolean
muster_grpc_check_size (const MusterRope *message, GError **error)
{
  if (message == NULL || muster_rope_size (message) <= MUSTER_MAX_MESSAGE)
    return TRUE;
  g_autofree char *size = muster_format_size (muster_rope_size (message));
  return muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                      "a message of %s is over the wire's limit of 2 GiB", size);
}

static void
unref_bytes (void *bytes)
{
  g_bytes_unref (bytes);
}

static grpc_slice
slice_from_bytes (GBytes *bytes)
{
  gsize size;
  gconstpointer data = g_bytes_get_data (bytes, &size);
  if (size < MIN_REFERENCE)
    return grpc_slice_from_copied_buffer (data, size);
  return grpc_slice_new_with_user_data ((void *)data, size, unref_bytes, g_bytes_ref (bytes));
}

/* One piece that is copied: most messages. */
static gboolean
is_short (const MusterRope *rope)
{
  return rope->pieces == NULL && rope->tail != NULL && rope->tail->len > 0 &&
         rope->tail->len < MIN_REFERENCE;
}

grpc_byte_buffer *
muster_grpc_buffer_from_rope (MusterRope *rope)
{
  grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create (NULL, 0);
  grpc_slice_buffer *slices = &buffer->data.raw.slice_buffer;
  if (rope != NULL && is_short (rope)) {
    grpc_slice_buffer_add (
        slices, grpc_slice_from_copied_buffer ((const char *)rope->tail->data, rope->tail->len));
    return buffer;
  }
  GPtrArray *pieces = rope != NULL ? muster_rope_pieces (rope) : NULL;
  for (guint i = 0; pieces != NULL && i < pieces->len; i++)
    grpc_slice_buffer_add (slices, slice_from_bytes (pieces->pdata[i]));
  return buffer;
}

static void
free_slice (gpointer data)
{
  grpc_slice *slice = data;
  grpc_slice_unref (*slice);
  g_free (slice);
}

static GBytes *
bytes_from_slice (grpc_slice slice)
{
  gsize size = GRPC_SLICE_LENGTH (slice);
  if (size < MIN_REFERENCE) {
    GBytes *copy = g_bytes_new (GRPC_SLICE_START_PTR (slice), size);
    grpc_slice_unref (slice);
    return copy;
  }
  grpc_slice *held = g_memdup2 (&slice, sizeof slice);
  return g_bytes_new_with_free_func (GRPC_SLICE_START_PTR (*held), size, free_slice, held);
}

/* Frees each slice as soon as it is copied, so that a large message isn't held twice. */
static GBytes *
gather (grpc_slice_buffer *slices, GError **error)
{
  gsize size = slices->length;
  guint8 *data = muster_memory_alloc (size);
  if (data == NULL) {
    muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                 "no memory for a message of %" G_GSIZE_FORMAT " bytes", size);
    return NULL;
  }
  for (guint8 *at = data; slices->count > 0;) {
    grpc_slice slice = grpc_slice_buffer_take_first (slices);
    memcpy (at, GRPC_SLICE_START_PTR (slice), GRPC_SLICE_LENGTH (slice));
    at += GRPC_SLICE_LENGTH (slice);
    grpc_slice_unref (slice);
  }
  return g_bytes_new_with_free_func (data, size, free, data);
}

GBytes *
muster_grpc_buffer_take_bytes (grpc_byte_buffer *buffer, GError **error)
{
  grpc_slice_buffer *slices = &buffer->data.raw.slice_buffer;
  if (slices->count == 1)
    return bytes_from_slice (grpc_slice_buffer_take_first (slices));
  return gather (slices, error);
}

gpr_timespec
muster_grpc_deadline (gint64 deadline_us, gint64 now_us)
{
  gint64 left_us = muster_deadline_remaining (deadline_us, now_us);
  if (left_us == MUSTER_WAIT_FOREVER)
    return gpr_inf_future (GPR_CLOCK_MONOTONIC);
  return gpr_time_add (gpr_now (GPR_CLOCK_MONOTONIC), gpr_time_from_micros (left_us, GPR_TIMESPAN));
}

gint64
muster_grpc_deadline_us (gpr_timespec deadline)
{
  if (gpr_time_cmp (deadline, gpr_inf_future (deadline.clock_type)) == 0)
    return MUSTER_WAIT_FOREVER;
  gpr_timespec left = gpr_time_sub (deadline, gpr_now (deadline.clock_type));
  if (left.tv_sec > G_MAXINT32)
    return MUSTER_WAIT_FOREVER; /* 68 years */
  gint64 left_us = left.tv_sec * MUSTER_SECOND + left.tv_nsec / 1000;
  return muster_deadline_after (muster_clock_now_us (muster_system_clock ()), left_us);
}

char *
muster_grpc_status_text (const char *text)
{
  char *valid = g_utf8_make_valid (text, -1);
  gsize escaped = 0;
  char *at = valid;
  while (*at != '\0') {
    char *next = g_utf8_next_char (at);
    gboolean is_plain = *at >= ' ' && *at <= '~' && *at != '%';
    escaped += is_plain ? 1 : 3 * (next - at);
    if (escaped > MAX_STATUS_ESCAPED || next - valid > MAX_STATUS_TEXT)
      break;
    at = next;
  }
  *at = '\0';
  return valid;
}

/* --- the details of a status: google.rpc.Status, its Any and RetryInfo --- */

enum { STATUS_CODE = 1, STATUS_MESSAGE = 2, STATUS_DETAILS = 3, ANY_TYPE_URL = 1 };

#define RETRY_INFO "type.googleapis.com/google.rpc.RetryInfo"

grpc_slice
muster_grpc_retry_details (const GError *error)
{
  g_autofree char *text = muster_grpc_status_text (error->message);
  g_autoptr (GByteArray) any = g_byte_array_new ();
  muster_proto_put_string (any, ANY_TYPE_URL, RETRY_INFO);
  g_autoptr (GByteArray) status = g_byte_array_new ();
  muster_proto_put_uint (status, STATUS_CODE, (guint64)muster_error_to_wire (error));
  muster_proto_put_string (status, STATUS_MESSAGE, text);
  muster_proto_put_bytes (status, STATUS_DETAILS, any->data, any->len);
  return grpc_slice_from_copied_buffer ((const char *)status->data, status->len);
}

static gboolean
is_retry_info (const MusterProtoField *any)
{
  MusterProtoReader reader = muster_proto_reader (any->data, any->size);
  MusterProtoField field;
  while (muster_proto_read_field (&reader, &field))
    if (field.number == ANY_TYPE_URL && field.type == MUSTER_WIRE_BYTES)
      return field.size == strlen (RETRY_INFO) && memcmp (field.data, RETRY_INFO, field.size) == 0;
  return FALSE;
}

static gboolean
has_retry_info (const grpc_slice *details)
{
  MusterProtoReader reader =
      muster_proto_reader (GRPC_SLICE_START_PTR (*details), GRPC_SLICE_LENGTH (*details));
  MusterProtoField field;
  while (muster_proto_read_field (&reader, &field))
    if (field.number == STATUS_DETAILS && field.type == MUSTER_WIRE_BYTES && is_retry_info (&field))
      return TRUE;
  return FALSE;
}

gboolean
muster_grpc_may_retry (const grpc_metadata_array *trailing)
{
  for (size_t i = 0; i < trailing->count; i++)
    if (grpc_slice_str_cmp (trailing->metadata[i].key, MUSTER_RPC_DETAILS) == 0)
      return has_retry_info (&trailing->metadata[i].value);
  return FALSE;
}
