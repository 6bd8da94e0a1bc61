// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* `muster doctor`; returns an exit code. */
int muster_cli_doctor (int argc, char **argv);

G_END_DECLS
