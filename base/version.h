// SPDX-License-Identifier: Apache-2.0
#pragma once

/* The version of all of muster, as `muster --version` and the server's About say it. */
#define MUSTER_VERSION "0.1.0"
