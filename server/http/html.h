// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Writes HTML. Texts of others, such as the names of models, are escaped. */

/* Appends format, in which each %s is escaped; strings must be valid UTF-8. */
void muster_html_put (GString *out, const char *format, ...) G_GNUC_PRINTF (2, 3);
/* Appends a text of unknown origin, escaped; (nullable): nothing. */
void muster_html_put_text (GString *out, const char *text);
/* "1150", "2.5", "0.033" (transfer full) */
char *muster_html_number (double value);

G_END_DECLS
