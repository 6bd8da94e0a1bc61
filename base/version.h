// SPDX-License-Identifier: Apache-2.0
#pragma once

/* The version of muster, as in `muster --version` and the server's About. */
#define MUSTER_VERSION "0.1.0"
