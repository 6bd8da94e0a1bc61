// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rpc/proto/muster.pb-c.h"

/* Prints a server's status to stdout, for people. */
void muster_cli_status_text (const Muster__StatusResponse *status);
