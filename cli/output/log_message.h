// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* One message of the log, and its forms. Names and messages from the network can't end a line or
 * control the terminal. */
typedef struct {
  GLogLevelFlags level;
  gint64 wall_us; /* since 1970 */
  const GLogField *fields;
  gsize n_fields;
} MusterLogMessage;

/* A copy in one block of *size bytes, which g_free () frees. (transfer full) */
MusterLogMessage *muster_log_message_copy (const MusterLogMessage *self, gsize *size);

/* A field's text; NULL: there is none. (transfer full) */
char *muster_log_message_find (const MusterLogMessage *self, const char *key);

/* Lines without their end. (transfer full) */
char *muster_log_message_as_text (const MusterLogMessage *self);
char *muster_log_message_as_json (const MusterLogMessage *self);
/* Just the message, for a person, with or without the command's name before it; not sanitised. */
char *muster_log_message_as_plain (const MusterLogMessage *self, gboolean is_displayed);

/* FALSE if no journal takes it. */
gboolean muster_log_message_to_journald (const MusterLogMessage *self);

/* The level of that name, or 0. */
GLogLevelFlags muster_log_level_of (const char *name);

G_END_DECLS
