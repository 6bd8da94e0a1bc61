// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>
#include <stdio.h>

G_BEGIN_DECLS

/* Printing for a person: what came from a file or the network can't play with the terminal. A tab
 * is a blank, other control characters but the newline are '?', and bytes that are no UTF-8 U+FFFD.
 * In a locale that isn't UTF-8 all of it is ASCII, the nearest there is. */

void muster_cli_say (FILE *stream, const char *format, ...) G_GNUC_PRINTF (2, 3);
/* The same, as a string. (transfer full) */
char *muster_cli_sanitise (const char *text);

/* How many columns a plain text takes. */
guint muster_cli_columns (const char *text);
/* The columns of the terminal that a stream is; 0: it is none. */
guint muster_cli_terminal_columns (FILE *stream);

/* A bar, full in part (0 to 1); green if coloured. */
void muster_cli_append_bar (GString *text, double part, guint columns, gboolean coloured);

/* A text's paragraphs, their lines as wide as columns (0: as long as each is); a line that begins
 * with two blanks stays as it is. (transfer full) */
char *muster_cli_wrap (const char *text, guint columns);

G_END_DECLS
