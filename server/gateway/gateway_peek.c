// SPDX-License-Identifier: Apache-2.0
/* Reads the few fields of a request that a gateway needs. */
#include "server/gateway/gateway_private.h"

#include "base/hash_private.h"
#include "base/protowire_private.h"
#include "graph/positioned_step_private.h"

#include <string.h>

enum {
  SESSION_HANDLE = 1, /* in every request, and in CreateSession's response */
  EXTENSION_NODES = 2,
  CALLABLE_OPTIONS = 2, /* in MakeCallable's request */
  OPTIONS_FEED = 1,
  CALLABLE_HANDLE = 2,
  CALLABLE_REQUEST_ID = 4,
  STEP_FEED = 2,
  FEED_NAME = 1,
  STEP_FETCH = 3,
  STEP_TARGET = 4,
  STEP_STORE_ERRORS = 7,
  STEP_REQUEST_ID = 8,
};

static gboolean
refuse (const char *why, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "The request is malformed: %s", why);
}

static gboolean
keep_handle (MusterGatewayPeek *peek, const MusterRpcField *field, GError **error)
{
  if (field->type != MUSTER_WIRE_BYTES || field->size > MUSTER_GATEWAY_MAX_HANDLE ||
      (field->size > 0 && memchr (field->data, '\0', field->size) != NULL))
    return refuse ("invalid session handle", error);
  if (field->size > 0)
    memcpy (peek->handle, field->data, field->size);
  peek->handle[field->size] = '\0';
  return TRUE;
}

/* Names too long to compare are distinguished by their size. */
static void
note_name (MusterGatewayPeek *peek, const MusterRpcField *field)
{
  peek->names = field->data != NULL
                    ? muster_hash_bytes (field->data, field->size, peek->names + field->number)
                    : muster_hash_bytes (&field->size, sizeof field->size, peek->names);
}

/* A position is a scalar, so a feed that is too long to be read isn't one. */
static gboolean
is_position (const MusterRpcField *feed)
{
  MusterProtoReader reader = muster_proto_reader (feed->data, feed->data != NULL ? feed->size : 0);
  MusterProtoField field;
  while (muster_proto_read_field (&reader, &field))
    if (field.number == FEED_NAME && field.type == MUSTER_WIRE_BYTES &&
        muster_feeds_position ((const char *)field.data, field.size))
      return TRUE;
  return FALSE;
}

/* The reader is at the field after the options of a callable. */
static gboolean
has_position (const MusterRpcReader *reader, const MusterRpcField *options)
{
  MusterRpcReader inside = *reader;
  MusterRpcField feed;
  muster_rpc_reader_enter (&inside, options);
  while (muster_rpc_reader_next (&inside, &feed))
    if (feed.number == OPTIONS_FEED && feed.data != NULL &&
        muster_feeds_position ((const char *)feed.data, feed.size))
      return TRUE;
  return FALSE;
}

static void
read_field (MusterGatewayKind kind, MusterGatewayPeek *peek, const MusterRpcField *field)
{
  gboolean is_bytes = field->type == MUSTER_WIRE_BYTES;
  const guint request_id = kind == MUSTER_GATEWAY_STEP ? STEP_REQUEST_ID : CALLABLE_REQUEST_ID;
  if (muster_gateway_is_step (kind) && !is_bytes && field->number == request_id)
    peek->request_id = (gint64)field->value;
  else if (kind == MUSTER_GATEWAY_STEP && is_bytes &&
           (field->number == STEP_FETCH || field->number == STEP_TARGET))
    note_name (peek, field);
  else if (kind == MUSTER_GATEWAY_STEP && is_bytes && field->number == STEP_FEED)
    peek->is_positioned = peek->is_positioned || is_position (field);
  else if (kind == MUSTER_GATEWAY_STEP && !is_bytes && field->number == STEP_STORE_ERRORS)
    peek->wants_errors_in_body = field->value != 0;
  else if ((kind == MUSTER_GATEWAY_CALLABLE || kind == MUSTER_GATEWAY_RELEASE) && !is_bytes &&
           field->number == CALLABLE_HANDLE)
    peek->callable = (gint64)field->value;
  else if (kind == MUSTER_GATEWAY_EXTENSION && is_bytes && field->number == EXTENSION_NODES)
    peek->node_bytes += field->size;
}

gboolean
muster_gateway_peek (const MusterRpcMessage *message, MusterGatewayKind kind,
                     MusterGatewayPeek *peek, GError **error)
{
  MusterRpcReader reader;
  MusterRpcField field;
  peek->handle[0] = '\0';
  peek->names = (guint64)kind;
  peek->node_bytes = 0;
  peek->request_id = 0;
  peek->callable = 0;
  peek->wants_errors_in_body = FALSE;
  peek->is_positioned = FALSE;
  muster_rpc_reader_init (&reader, message);
  while (muster_rpc_reader_next (&reader, &field)) {
    if (field.number == SESSION_HANDLE) {
      if (!keep_handle (peek, &field, error))
        return FALSE;
      continue;
    }
    read_field (kind, peek, &field);
    if (kind == MUSTER_GATEWAY_MAKING && field.number == CALLABLE_OPTIONS &&
        field.type == MUSTER_WIRE_BYTES)
      peek->is_positioned = peek->is_positioned || has_position (&reader, &field);
  }
  if (kind == MUSTER_GATEWAY_CALLABLE)
    peek->names = muster_hash_bytes (&peek->callable, sizeof peek->callable, 0);
  return !reader.is_malformed || refuse ("malformed field", error);
}
