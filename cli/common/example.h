// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* `muster train --example`: the words of argv with those that train the installed example (share/
 * muster/examples) before them: model, feeds and, unless argv has its own, master, loss and number
 * of epochs. Without --example: a copy of argv. (transfer full). INVALID_ARGUMENT for a model or
 * feeds beside the example's, NOT_FOUND if it isn't installed. */
char **muster_cli_example_expand (char *const *argv, GError **error);

/* The command that words are, to type, without --example (transfer full). */
char *muster_cli_example_command (char *const *words);

G_END_DECLS
