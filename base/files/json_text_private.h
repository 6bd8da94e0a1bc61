// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Checks of untrusted JSON text before json-glib parses it. text is NUL-terminated; malformed text
 * passes, since the parser reports it. */

/* FALSE if objects and arrays nest deeper than most: the parser is recursive. */
gboolean muster_json_is_flat (const char *text, guint most);

/* TRUE if the text is exactly one object. Of several values the parser returns the last and leaks
 * the others. */
gboolean muster_json_is_one_object (const char *text);

G_END_DECLS
