// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* The commands: each gets its own arguments, argv[0] being its name, and returns an exit code. */
int muster_cli_serve (int argc, char **argv);
int muster_cli_prepare (int argc, char **argv);
int muster_cli_wait (int argc, char **argv);
int muster_cli_inspect (int argc, char **argv);
int muster_cli_train (int argc, char **argv);
int muster_cli_evaluate (int argc, char **argv);
int muster_cli_status (int argc, char **argv);
int muster_cli_run (int argc, char **argv);
int muster_cli_save (int argc, char **argv);
int muster_cli_drain (int argc, char **argv);
int muster_cli_finish (int argc, char **argv);

G_END_DECLS
