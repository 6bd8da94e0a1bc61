// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/master.h"
#include "rpc/credentials.h"

G_BEGIN_DECLS

/**
 * muster_master_new_for_target:
 * @target: "grpc://HOST:PORT" (or "HOST:PORT"), "unix:/PATH", "grpcs://HOST:PORT", or one that the
 *   program offers
 *
 * Creates the master that a target names: a remote one ("unix:/PATH" is a Unix socket of this
 * machine, "grpcs://" uses TLS), or one that the program has offered (muster_master_offer ()), such
 * as "local". INVALID_ARGUMENT lists the supported targets.
 *
 * Returns: (transfer full): the master
 */
MusterMaster *muster_master_new_for_target (const char *target, GError **error);

/**
 * muster_master_new_secured:
 * @target: as for [func@Master.new_for_target]
 * @credentials: (nullable): how the server is trusted and the client known
 *
 * Creates a master with credentials, which only remote masters support. "grpcs://" without
 * credentials trusts the system's certificates. "grpc://" with TLS credentials is INVALID_ARGUMENT,
 * as is "grpcs://" with credentials for plain text, so that secrets are never sent in plain text by
 * mistake.
 *
 * Returns: (transfer full): the master
 */
MusterMaster *muster_master_new_secured (const char *target, MusterRpcCredentials *credentials,
                                         GError **error);

/**
 * muster_master_new_with_files:
 * @target: "grpc://HOST:PORT", "grpcs://HOST:PORT" or "unix:/PATH"
 * @ca_file: (nullable): trusted certificates
 * @certificate_file: (nullable): the client's certificate
 * @key_file: (nullable): its key
 * @token_file: (nullable): a token, sent with each call
 *
 * Creates a master with credentials from files: [func@Master.new_secured] in one call.
 *
 * Returns: (transfer full): a master
 */
MusterMaster *muster_master_new_with_files (const char *target, const char *ca_file,
                                            const char *certificate_file, const char *key_file,
                                            const char *token_file, GError **error);

/**
 * MusterMasterFactory:
 * @target: the target
 * @error: where to return an error
 *
 * Creates a master for a target that a program offers: one that links the engine offers "local".
 *
 * Returns: (transfer full): the master
 */
typedef MusterMaster *(*MusterMasterFactory) (const char *target, GError **error);

/**
 * muster_master_offer: (skip)
 * @scheme: the scheme: "local" is for targets "local" and "local:…"
 * @factory: creates the masters
 *
 * Registers a factory for a scheme.
 */
void muster_master_offer (const char *scheme, MusterMasterFactory factory);

/**
 * muster_master_is_offered:
 * @target: a target
 *
 * Tests whether the program offers the target's scheme: its master is in this process or a child
 * process. A target has a scheme if it is "SCHEME" or begins with "SCHEME:", except "SCHEME:PORT",
 * which is a host with that name.
 *
 * Returns: %TRUE if it does
 */
gboolean muster_master_is_offered (const char *target);

G_END_DECLS
