// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Text that others wrote (another machine, a file, a user) in muster's messages, and secrets. */

/* FALSE for what would control a terminal, end a line or turn its direction: control and format
 * characters, and Unicode's line and paragraph separators. */
gboolean muster_is_printable (gunichar c);

/* Others' text on one line: blanks in place of line breaks and tabs, '?' for any other character
 * that isn't printable, U+FFFD for what isn't UTF-8. size: its bytes, or -1. Of a text longer than
 * most bytes (0: any) the beginning, with "…". (transfer full) */
char *muster_safe_text (const char *text, gssize size, gsize most);

/* The same, but its line breaks stay. (transfer full) */
char *muster_safe_lines (const char *text);

/* TRUE for what may be a secret in a header or a form: printable ASCII, none at either end a blank,
 * and not empty. A line break in it would begin a header of its own. */
gboolean muster_is_secret (const char *text, gsize size);

/* Others' text without the secrets that it tells back. secrets (array zero-terminated=1); empty
 * ones are passed over. (transfer full) */
char *muster_hide_secrets (const char *text, const char *const *secrets);

G_END_DECLS
