// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>
#include <stdio.h>

G_BEGIN_DECLS

/* Prints text safely: text from a file or the network can't control the terminal. Tabs become
 * spaces, other control characters except newlines '?', and invalid UTF-8 U+FFFD. In a locale that
 * isn't UTF-8 everything is converted to the nearest ASCII. */

void muster_cli_say (FILE *stream, const char *format, ...) G_GNUC_PRINTF (2, 3);
/* The same, as a string. (transfer full) */
char *muster_cli_sanitise (const char *text);

/* The width of a plain text in columns. */
guint muster_cli_columns (const char *text);
/* The width of a terminal in columns; 0: the stream isn't one. */
guint muster_cli_terminal_columns (FILE *stream);

/* Appends a bar, filled by part (0 to 1); green if coloured. */
void muster_cli_append_bar (GString *text, double part, guint columns, gboolean coloured);

/* Wraps a text's paragraphs to columns (0: no wrapping); lines that begin with two spaces stay as
 * they are. (transfer full) */
char *muster_cli_wrap (const char *text, guint columns);

G_END_DECLS
