// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* The files of AWS's tools, ~/.aws/config and ~/.aws/credentials: "[section]", "name = value",
 * comments on lines of their own. Indented lines belong to the setting above and are left out.
 * Lines that are none of these are ignored, as they may be another tool's. */

/* Puts the settings of one section into settings, over those that are there. FALSE if the text has
 * no such section. */
gboolean muster_ini_read (const char *text, gsize size, const char *section, GHashTable *settings);

G_END_DECLS
