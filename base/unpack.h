// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/arena.h"

#include <protobuf-c/protobuf-c.h>

G_BEGIN_DECLS

/* Unpacks a message that came from the network or a file. protobuf-c limits no recursion and
 * doesn't check UTF-8; a few kilobytes of nested AttrValues would overflow its stack. So the bytes
 * are checked here along the message's descriptor. INVALID_ARGUMENT, which names the field, for
 * bytes that nest deeper than MUSTER_MAX_DEPTH (protobuf's own limit), for a string that isn't
 * UTF-8 or contains a NUL, and for malformed bytes. The result is protobuf-c's struct in an arena:
 * few allocations for thousands of sub-messages, freed by one call. Unknown fields are kept and
 * packed again. Parts of one message are merged. */

#define MUSTER_MAX_DEPTH 100

/* Checks without unpacking. what names the message in the error: "graph", "CreateSession request".
 */
gboolean muster_unpack_check (const ProtobufCMessageDescriptor *descriptor, const void *data,
                              gsize size, const char *what, GError **error);

/* Checks, and unpacks into arena. The message lives as long as the arena and isn't freed
 * separately. NULL with INVALID_ARGUMENT, or RESOURCE_EXHAUSTED if it expands beyond the process's
 * limit of memory. */
gpointer muster_unpack (const ProtobufCMessageDescriptor *descriptor, const void *data, gsize size,
                        MusterArena *arena, const char *what, GError **error);

/* The same for a message that nobody changes: within a large one, equal small elements of repeated
 * fields below the top are one element. A graph of many variables has the same few attributes again
 * and again. */
gconstpointer muster_unpack_const (const ProtobufCMessageDescriptor *descriptor, const void *data,
                                   gsize size, MusterArena *arena, const char *what,
                                   GError **error);

/* Packs a message into new bytes. */
GBytes *muster_pack (const ProtobufCMessage *message);

G_END_DECLS
