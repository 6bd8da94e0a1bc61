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
  MUSTER_PROTO_TEXT_STRICT,       /* an unknown field is an error */
  MUSTER_PROTO_TEXT_SKIP_UNKNOWN, /* skips unknown fields and extensions */
} MusterProtoTextUnknown;

/* Converts text to a serialised message (transfer full). INVALID_ARGUMENT, with the line, if the
 * text is malformed or names a field that the descriptor lacks. */
GByteArray *muster_proto_text_parse (const ProtobufCMessageDescriptor *descriptor,
                                     MusterProtoTextUnknown unknown, const char *text, gsize size,
                                     GError **error);

G_END_DECLS
