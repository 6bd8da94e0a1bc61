// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rpc/roles.h"
#include "rpc/secret_private.h"

G_BEGIN_DECLS

/* The tokens that a server accepts: their SHA-256, each with a role. Immutable and
 * reference-counted; any thread. */
typedef struct _MusterTokens MusterTokens;

/* Reads a token file, which `file` names in errors. own (nullable out) is the token itself; for a
 * client, whose file must contain exactly one. INVALID_ARGUMENT names the line, never its content.
 */
MusterTokens *muster_tokens_read (const char *path, MusterSecret *own, GError **error);
MusterTokens *muster_tokens_ref (MusterTokens *self);
void muster_tokens_unref (MusterTokens *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterTokens, muster_tokens_unref)

gsize muster_tokens_size (const MusterTokens *self);
gboolean muster_tokens_equal (const MusterTokens *self, const MusterTokens *other);

/* MUSTER_ROLE_NONE for an unknown token. Takes the same time for all tokens of one length. line
 * (out) (nullable) is the token's line of the file. mark (out) (nullable) tells the token from
 * others, whatever becomes of the file: the beginning of its hash. */
MusterRole muster_tokens_find (const MusterTokens *self, const char *token, gsize size, guint *line,
                               guint64 *mark);

G_END_DECLS
