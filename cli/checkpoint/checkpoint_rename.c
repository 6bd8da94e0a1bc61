// SPDX-License-Identifier: Apache-2.0
#include "base/files/read_file_private.h"
#include "cli/checkpoint/checkpoint.h"
#include "cli/checkpoint/checkpoint_edit.h"
#include "cli/checkpoint/checkpoint_open.h"

#include <string.h>

#define MAX_FILE ((gsize)16 << 20)

static const char summary[] =
    "Writes a checkpoint with other names for its variables as OUT. A rule OLD=NEW changes one\n"
    "name, a/*=b/* all that begin with a/; the first rule that matches applies. Each must match\n"
    "a name, and no two variables may get one name. A meta graph isn't copied, since it has the "
    "old names. OUT\n"
    "isn't listed in its directory. The names in an object-based checkpoint can't be changed.";

typedef struct {
  MusterCliEdit edit;
  char **rules;     /* (owned) (nullable) */
  char *file;       /* (owned) (nullable) */
  GPtrArray *names; /* (owned) (element-type utf8) old and new in turn */
} Rename;

static void
rename_clear (Rename *self)
{
  g_strfreev (self->rules);
  g_free (self->file);
  g_clear_pointer (&self->names, g_ptr_array_unref);
  muster_cli_edit_end (&self->edit);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Rename, rename_clear)

static gboolean
add_rule (Rename *self, const char *rule, GError **error)
{
  const char *equals = strchr (rule, '=');
  if (equals == NULL || equals == rule || equals[1] == '\0')
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "invalid rule '%s' (use OLD=NEW)",
                        rule);
  g_ptr_array_add (self->names, g_strndup (rule, (gsize)(equals - rule)));
  g_ptr_array_add (self->names, g_strdup (equals + 1));
  return TRUE;
}

/* A rule a line. */
static gboolean
read_file (Rename *self, GError **error)
{
  g_autofree char *text = NULL;
  if (self->file == NULL)
    return TRUE;
  const MusterFile file = {self->file, "the rules", MAX_FILE, TRUE};
  if (!muster_file_read (&file, &text, NULL, error))
    return FALSE;
  g_auto (GStrv) lines = g_strsplit (text, "\n", -1);
  for (char **line = lines; *line != NULL; line++)
    if (*g_strchomp (*line) != '\0' && !add_rule (self, *line, error)) {
      g_prefix_error (error, "'%s', line %d: ", self->file, (int)(line - lines) + 1);
      return FALSE;
    }
  return TRUE;
}

static gboolean
read_rules (Rename *self, GError **error)
{
  self->names = g_ptr_array_new_with_free_func (g_free);
  for (char **rule = self->rules; rule != NULL && *rule != NULL; rule++)
    if (!add_rule (self, *rule, error))
      return FALSE;
  if (!read_file (self, error))
    return FALSE;
  if (self->names->len == 0)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "checkpoint rename needs --map=OLD=NEW or --map-file=FILE");
  g_ptr_array_add (self->names, NULL);
  return TRUE;
}

int
muster_cli_checkpoint_rename (int argc, char **argv)
{
  g_auto (Rename) self = {0};
  MusterCliEdit *edit = &self.edit;
  g_autoptr (GError) error = NULL;
  MusterEditReport report;
  int code;
  const GOptionEntry entries[] = {
      {"map", 0, 0, G_OPTION_ARG_STRING_ARRAY, &self.rules,
       "a rule; may be repeated, and takes precedence over those of --map-file", "OLD=NEW"},
      {"map-file", 0, 0, G_OPTION_ARG_FILENAME, &self.file, "a file with a rule in each line",
       "FILE"},
      {NULL}};
  if (!muster_cli_edit_begin (edit, argc, argv, "PREFIX OUT --map=OLD=NEW", summary, entries, 2, 2,
                              &code))
    return code;
  g_autofree char *from =
      read_rules (&self, &error) ? muster_cli_checkpoint_find (edit->words[0], &error) : NULL;
  const char *to = edit->words[1];
  muster_cli_edit_part (edit, "renaming into", to);
  if (from == NULL ||
      !muster_checkpoint_rename (from, (const char *const *)self.names->pdata, to, &edit->edit,
                                 &report, muster_cli_edit_progress, edit, edit->deadline_us,
                                 muster_cli_edit_cancellable (edit), &error))
    return muster_cli_edit_fail (edit, error);
  muster_cli_edit_print (edit, "renamed", to, from, NULL, &report);
  return MUSTER_EXIT_DONE;
}
