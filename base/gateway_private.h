// SPDX-License-Identifier: Apache-2.0
#pragma once

/* Begins the target of the gateway that a user's task of a cluster has on this machine; and a
 * diagnosis of it, while it doesn't answer. */
#define MUSTER_GATEWAY_PREFIX    "unix:/tmp/muster-"
#define MUSTER_GATEWAY_DIAGNOSIS "this task's gateway, "
