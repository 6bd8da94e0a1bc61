// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* `muster checkpoint VERB …`; returns an exit code. */
int muster_cli_checkpoint (int argc, char **argv);

/* The subcommands of `muster checkpoint`. Each gets its own arguments, with argv[0] "checkpoint
 * NAME", and returns an exit code. */

int muster_cli_checkpoint_list (int argc, char **argv);
int muster_cli_checkpoint_show (int argc, char **argv);
int muster_cli_checkpoint_latest (int argc, char **argv);
int muster_cli_checkpoint_verify (int argc, char **argv);
int muster_cli_checkpoint_diff (int argc, char **argv);
int muster_cli_checkpoint_prune (int argc, char **argv);
int muster_cli_checkpoint_pin (int argc, char **argv);
int muster_cli_checkpoint_unpin (int argc, char **argv);
int muster_cli_checkpoint_mark (int argc, char **argv);
int muster_cli_checkpoint_copy (int argc, char **argv);
int muster_cli_checkpoint_merge (int argc, char **argv);
int muster_cli_checkpoint_extract (int argc, char **argv);
int muster_cli_checkpoint_rename (int argc, char **argv);

G_END_DECLS
