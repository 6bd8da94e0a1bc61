// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/arena.h"

#include <protobuf-c/protobuf-c.h>

G_BEGIN_DECLS

/* Unpacking a message that came from the network or a file. protobuf-c bounds no recursion and
 * checks no UTF-8, and a few kilobytes of nested AttrValues would run it off the stack; so the
 * bytes are walked along the message's own descriptor here, and refused with INVALID_ARGUMENT that
 * names the field, when they nest deeper than MUSTER_MAX_DEPTH (protobuf's own limit), hold a
 * string that isn't UTF-8 or has a NUL in it, or are malformed. What comes out is protobuf-c's
 * struct in an arena: few allocations for thousands of sub-messages, one call to free them. Fields
 * that the descriptor doesn't know are kept and packed again; a message in parts is merged. */

#define MUSTER_MAX_DEPTH 100

/* Walks without unpacking. what names the message in the error: "graph", "CreateSession request".
 */
gboolean muster_unpack_check (const ProtobufCMessageDescriptor *descriptor, const void *data,
                              gsize size, const char *what, GError **error);

/* Checks and unpacks into arena: the message lives as long as the arena does and needs no freeing
 * of its own. NULL with INVALID_ARGUMENT. */
gpointer muster_unpack (const ProtobufCMessageDescriptor *descriptor, const void *data, gsize size,
                        MusterArena *arena, const char *what, GError **error);

/* Packs a message into new bytes. */
GBytes *muster_pack (const ProtobufCMessage *message);

G_END_DECLS
