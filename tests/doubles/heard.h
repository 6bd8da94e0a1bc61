// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Hears muster's log in place of stderr, from heard_begin () to heard_end (). Any thread may log.
 */

/* With the least severe level that is on. */
void heard_begin (GLogLevelFlags level);
void heard_end (void);

/* The number of messages with that event (NULL: any) and text (a glob pattern; NULL: any). */
guint heard_count (const char *event, const char *pattern);
/* Waits until there is one; FALSE after half a minute. */
gboolean heard_wait (const char *event, const char *pattern);
/* A field of the last message with that event. (transfer full) (nullable) */
char *heard_field (const char *event, const char *key);
/* The same of the last one that has such a text (a glob pattern), too. */
char *heard_field_like (const char *event, const char *pattern, const char *key);
/* The level of the last message with that event; 0: there is none. */
GLogLevelFlags heard_level (const char *event);

G_END_DECLS
