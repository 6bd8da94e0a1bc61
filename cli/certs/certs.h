// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* `muster certs`; returns the exit code. */
int muster_cli_certs (int argc, char **argv);

G_END_DECLS
