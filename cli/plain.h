// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>
#include <stdio.h>

G_BEGIN_DECLS

/* Printing for a person: what came from a file or the network can't play with the terminal, since
 * control characters but the newline are shown as '?', and bytes that are no UTF-8 as U+FFFD. */

void muster_cli_say (FILE *stream, const char *format, ...) G_GNUC_PRINTF (2, 3);
/* The same, as a string. (transfer full) */
char *muster_cli_plain (const char *text);

G_END_DECLS
