// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/unpack.h"
#include "cli/cli.h"
#include "rpc/client/rpc_client.h"
#include "rpc/proto/muster.pb-c.h"

G_BEGIN_DECLS

/* What a master says of itself, for people and for programs. */
void muster_cli_status_text (const MusterCliOptions *options, const Muster__StatusResponse *status);
void muster_cli_status_json (const MusterCliOptions *options, const Muster__StatusResponse *status);

G_END_DECLS
