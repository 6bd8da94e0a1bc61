// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>
#include <stdio.h>

G_BEGIN_DECLS

/* Prints text safely: text from a file or the network can't control the terminal
 * (base/safe_text_private.h). In a locale that isn't UTF-8 everything is converted to the nearest
 * ASCII. */

/* One statement. Its further lines are indented, so that no text of others in it begins a line as
 * muster's own do. */
void muster_cli_say (FILE *stream, const char *format, ...) G_GNUC_PRINTF (2, 3);
/* muster's own text, of any number of lines. */
void muster_cli_put (FILE *stream, const char *format, ...) G_GNUC_PRINTF (2, 3);

/* Writes what was printed. Returns what has kept stdout from being written since the start, an
 * errno, or 0. */
int muster_cli_flush (FILE *stream);

/* As strings: with the text's line breaks; on one line; as a statement. (transfer full) */
char *muster_cli_sanitise (const char *text);
char *muster_cli_one_line (const char *text);
char *muster_cli_statement (const char *text);

/* The width of a plain text in columns. */
guint muster_cli_columns (const char *text);
/* The width of a terminal in columns; 0: the stream isn't one. */
guint muster_cli_terminal_columns (FILE *stream);

/* Appends a bar, filled by part (0 to 1); green if coloured. */
void muster_cli_append_bar (GString *text, double part, guint columns, gboolean coloured);

/* Wraps a text's paragraphs to columns (0: no wrapping); lines that begin with two spaces stay as
 * they are. (transfer full) */
char *muster_cli_wrap (const char *text, guint columns);
/* Appends a plain text and a newline at `column`, below which it goes on if it is longer than what
 * is left of `columns` (0: no wrapping). */
void muster_cli_append_wrapped (GString *out, const char *text, guint column, guint columns);

G_END_DECLS
