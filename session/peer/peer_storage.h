// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/storage.h"

G_BEGIN_DECLS

/**
 * muster_peer_storage_offer:
 *
 * Adds checkpoints in the memory of another `muster serve` to [func@default_storage], before a path
 * of theirs is used: `grpc://HOST:PORT/NAME`, or `grpcs://` with TLS, as a job's fast tier
 * ([struct@Tier]). The command does so, and `import muster` in Python.
 *
 * `MUSTER_STORE_TOKEN_FILE` and `MUSTER_STORE_TLS_CA` of the environment name the files of their
 * credentials.
 */
void muster_peer_storage_offer (void);

G_END_DECLS
