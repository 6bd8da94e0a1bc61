// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/fields_private.h"
#include "cli/common/config_file.h"

G_BEGIN_DECLS

/* MusterFlags are the options of a command: its own table, and the fields of structs whose line in
 * the header's comment has a flag for the command. Those are parsed, checked and set by their
 * declaration; bazel/README.md says how. */

typedef struct _MusterFlags MusterFlags;

MusterFlags *muster_flags_new (const char *command);
void muster_flags_free (MusterFlags *self); /* accepts NULL */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterFlags, muster_flags_free)

/* Adds a command's own options (NULL-terminated): arg_data are offsets in data. */
void muster_flags_add (MusterFlags *self, const GOptionEntry *own, gpointer data);

/* Adds the flags of a struct of options, and then of the structs in it. */
void muster_flags_add_fields (MusterFlags *self, const MusterFields *fields, gpointer options);
/* The same of a boxed type. */
void muster_flags_add_options (MusterFlags *self, GType type, gpointer options);

/* The options, in the order in which they were added; borrowed until the next is added. */
const GOptionEntry *muster_flags_entries (const MusterFlags *self);

/* The file (nullable) (not owned) whose options were merged into the command line, for messages. */
void muster_flags_set_file (MusterFlags *self, MusterConfigFile *file);

/* An option's name for messages: "--NAME", or where the file sets it; borrowed. */
const char *muster_flags_name (const MusterFlags *self, const char *name);

/* TRUE if the command line, as parsed, gives a field's flag. */
gboolean muster_flags_is_given (const MusterFlags *self, const char *name);

/* Sets the fields whose flags are given. Their texts belong to self. */
gboolean muster_flags_apply (MusterFlags *self, GError **error);

G_END_DECLS
