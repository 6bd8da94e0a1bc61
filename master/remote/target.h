// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/master.h"
#include "rpc/credentials.h"

G_BEGIN_DECLS

/* From a target string to the master that it names: a remote one, or one that the program offers.
 */

/**
 * muster_master_new_for_target:
 *
 * Makes a master from a target string. Known here: "grpc://HOST:PORT" (and "HOST:PORT") and, with
 * TLS, "grpcs://HOST:PORT". "local" and others are known once a program has offered them
 * (muster_master_offer). INVALID_ARGUMENT lists what is known.
 *
 * Returns: (transfer full)
 */
MusterMaster *muster_master_new_for_target (const char *target, GError **error);

/**
 * muster_master_new_secured: (skip)
 *
 * The same with credentials (nullable), which only a server takes. "grpcs://" without any trusts
 * what the system trusts; "grpc://" with those for TLS is INVALID_ARGUMENT, as is the contrary:
 * what is meant to be secret never goes in plain text by mistake.
 */
MusterMaster *muster_master_new_secured (const char *target, MusterRpcCredentials *credentials,
                                         GError **error);

/**
 * muster_master_new_with_files:
 * @target: "grpc://HOST:PORT" or "grpcs://HOST:PORT"
 * @ca_file: (nullable): whom to trust
 * @certificate_file: (nullable): one's own certificate
 * @key_file: (nullable): and its key
 * @token_file: (nullable): a token, sent with each call
 *
 * The same for languages that can't fill in #MusterRpcSecurity, whose files these are.
 *
 * Returns: (transfer full): a master
 */
MusterMaster *muster_master_new_with_files (const char *target, const char *ca_file,
                                            const char *certificate_file, const char *key_file,
                                            const char *token_file, GError **error);

/* Offers a kind of target to muster_master_new_for_target (): a program that links the engine
 * offers "local". */
typedef MusterMaster *(*MusterMasterFactory) (const char *target, GError **error);

/**
 * muster_master_offer: (skip)
 */
void muster_master_offer (const char *scheme, MusterMasterFactory factory);

/**
 * muster_master_is_offered: (skip)
 *
 * Whether the target is of a kind that the program has offered: its master is in this process, or
 * its child, and nobody else's. A target is of a scheme if it is "SCHEME" or begins with "SCHEME:",
 * but for "SCHEME:PORT", which is a host of that name.
 */
gboolean muster_master_is_offered (const char *target);

G_END_DECLS
