// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>
#include <protobuf-c/protobuf-c.h>

G_BEGIN_DECLS

/* protobuf's text format, by a message's descriptor. Nesting is limited to MUSTER_MAX_DEPTH. */

/* Converts a serialised message to text (transfer full). UNIMPLEMENTED if it has a field that the
 * descriptor lacks. */
GString *muster_proto_text_print (const ProtobufCMessageDescriptor *descriptor, const void *data,
                                  gsize size, GError **error);

typedef enum {
  MUSTER_PROTO_TEXT_STRICT,       /* a field of a newer program looks like a mistake */
  MUSTER_PROTO_TEXT_SKIP_UNKNOWN, /* also extensions */
} MusterProtoTextUnknown;

/* Text as a serialised message (transfer full). INVALID_ARGUMENT says in which line it is wrong, or
 * has a name that the descriptor hasn't. */
GByteArray *muster_proto_text_parse (const ProtobufCMessageDescriptor *descriptor,
                                     MusterProtoTextUnknown unknown, const char *text, gsize size,
                                     GError **error);

G_END_DECLS
