// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/arena_private.h"

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

/* Unpacks a large message part by part, for who doesn't want all of it at once. Nobody changes the
 * parts: equal small elements of their repeated fields are one element. A graph of many variables
 * has the same few attributes again and again. */
typedef struct _MusterUnpacker MusterUnpacker;

/* size is the whole message's: within a small one nothing is shared. */
MusterUnpacker *muster_unpacker_new (MusterArena *arena, const char *what, gsize size);
void muster_unpacker_free (MusterUnpacker *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterUnpacker, muster_unpacker_free)

/* Adds some of its fields to an initialised message, which is depth messages below the whole. The
 * bytes must live as long as the arena: fields of bytes aren't copied but point there. Fails as
 * muster_unpack () does. */
gboolean muster_unpacker_add (MusterUnpacker *self, ProtobufCMessage *message, const void *data,
                              gsize size, int depth, GError **error);

/* Only checks some fields of such a message. */
gboolean muster_unpacker_check (MusterUnpacker *self, const ProtobufCMessageDescriptor *descriptor,
                                const void *data, gsize size, int depth);

/* UTF-8 without a NUL. */
gboolean muster_is_text (const guint8 *data, gsize size);

/* Packs a message into new bytes. */
GBytes *muster_pack (const ProtobufCMessage *message);

G_END_DECLS
