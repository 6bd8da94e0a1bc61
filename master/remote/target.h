// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/master.h"
#include "rpc/credentials.h"

G_BEGIN_DECLS

/* Creates the master that a target string names: a remote one, or one that the program offers. */

/**
 * muster_master_new_for_target:
 *
 * Creates a master from a target: "grpc://HOST:PORT" (or "HOST:PORT") and, with TLS,
 * "grpcs://HOST:PORT". "local" and others are supported after the program has offered them
 * (muster_master_offer ()). INVALID_ARGUMENT lists the supported targets.
 *
 * Returns: (transfer full)
 */
MusterMaster *muster_master_new_for_target (const char *target, GError **error);

/**
 * muster_master_new_secured: (skip)
 *
 * The same with credentials (nullable), which only remote masters support. "grpcs://" without
 * credentials trusts the system's certificates. "grpc://" with TLS credentials is INVALID_ARGUMENT,
 * as is "grpcs://" with credentials for plain text, so that secrets are never sent in plain text by
 * mistake.
 */
MusterMaster *muster_master_new_secured (const char *target, MusterRpcCredentials *credentials,
                                         GError **error);

/**
 * muster_master_new_with_files:
 * @target: "grpc://HOST:PORT" or "grpcs://HOST:PORT"
 * @ca_file: (nullable): trusted certificates
 * @certificate_file: (nullable): the client's certificate
 * @key_file: (nullable): its key
 * @token_file: (nullable): a token, sent with each call
 *
 * The same for bindings, which can't set #MusterRpcSecurity.
 *
 * Returns: (transfer full): a master
 */
MusterMaster *muster_master_new_with_files (const char *target, const char *ca_file,
                                            const char *certificate_file, const char *key_file,
                                            const char *token_file, GError **error);

/* Creates a master for a target that a program offers: one that links the engine offers "local". */
typedef MusterMaster *(*MusterMasterFactory) (const char *target, GError **error);

/**
 * muster_master_offer: (skip)
 *
 * Registers a factory for a scheme. Scheme "local" is for targets "local" and "local:…".
 */
void muster_master_offer (const char *scheme, MusterMasterFactory factory);

/**
 * muster_master_is_offered: (skip)
 *
 * TRUE if the program offers the target's scheme: its master is in this process or a child process.
 * A target has a scheme if it is "SCHEME" or begins with "SCHEME:", except "SCHEME:PORT", which is
 * a host with that name.
 */
gboolean muster_master_is_offered (const char *target);

G_END_DECLS
