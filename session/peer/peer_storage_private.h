// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rpc/credentials.h"
#include "session/peer/peer_storage.h"

G_BEGIN_DECLS

/* Files in the memory of another `muster serve` as a MusterStorage, an object store: paths are
 * grpc://HOST:PORT/NAME/FILE, or with grpcs:// by TLS. Bytes travel in blocks, each with its
 * checksum. Nothing is retried: a fast tier that fails is left out for a while. */

/* credentials is (nullable). Each server is connected to when its first path is used. */
MusterStorage *muster_peer_storage_new (MusterRpcCredentials *credentials);

G_END_DECLS
