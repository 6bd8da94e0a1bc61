// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"

G_BEGIN_DECLS

/* MusterConfigFile is a file with a command's options: a group of a key file, as GLib's and
 * systemd's, whose keys are the long names of the options.
 *
 *     [serve]
 *     listen=localhost:2222
 *     max-sessions=500
 *     insecure=false
 *
 * Lists are separated by ';', and '\' escapes as in GLib's key files. Errors name file and line. */

typedef struct _MusterConfigFile MusterConfigFile;

/* Reads a file whose only group is [group]. INVALID_ARGUMENT for a line that is neither a key, a
 * group nor a comment, for another group, and for a key that is there twice. */
MusterConfigFile *muster_config_file_load (const char *path, const char *group, GError **error);
void muster_config_file_free (MusterConfigFile *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterConfigFile, muster_config_file_free)

/* The command line argv with the file's options before its own, so that an option of the command
 * line replaces the file's; of a repeatable option too, all of the file's values. entries
 * (NULL-terminated) are the options that the file may set: INVALID_ARGUMENT for another, with the
 * nearest name, and for a value that isn't of the option's type. (transfer full) */
char **muster_config_file_merge (MusterConfigFile *self, const GOptionEntry *entries,
                                 char *const *argv, GError **error);

/* Where the file sets an option that the command line doesn't, as "FILE:LINE: NAME", for messages;
 * borrowed. NULL if it doesn't. After merge. */
const char *muster_config_file_origin (MusterConfigFile *self, const char *name);

G_END_DECLS
