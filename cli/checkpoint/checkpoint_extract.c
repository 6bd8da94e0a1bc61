// SPDX-License-Identifier: Apache-2.0
#include "cli/checkpoint/checkpoint.h"
#include "cli/checkpoint/checkpoint_edit.h"
#include "cli/checkpoint/checkpoint_open.h"

static const char summary[] =
    "Extracts the variables that match a PATTERN, with '*' for any characters and '?' for one: to\n"
    "NumPy files DIR/NAME.npy, or to a smaller checkpoint, which isn't listed in its directory.\n"
    "A variable of an object-based checkpoint matches by its path, its name or its key.";

typedef struct {
  MusterCliEdit edit;
  char **patterns;  /* (owned) */
  char *to;         /* (owned) (nullable) */
  char *checkpoint; /* (owned) (nullable) */
} Extract;

static void
extract_clear (Extract *self)
{
  g_strfreev (self->patterns);
  g_free (self->to);
  g_free (self->checkpoint);
  muster_cli_edit_end (&self->edit);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Extract, extract_clear)

static gboolean
extract (Extract *self, const char *from, MusterEditReport *report, GError **error)
{
  MusterCliEdit *edit = &self->edit;
  const gboolean is_npy = self->to != NULL;
  muster_cli_edit_part (edit, "extracting from", from);
  return (is_npy ? muster_checkpoint_extract_npy : muster_checkpoint_extract) (
      from, (const char *const *)self->patterns, is_npy ? self->to : self->checkpoint, &edit->edit,
      report, muster_cli_edit_progress, edit, edit->deadline_us, muster_cli_edit_cancellable (edit),
      error);
}

static gboolean
check (const Extract *self, GError **error)
{
  if (self->patterns == NULL)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "checkpoint extract needs --variables=PATTERN");
  if ((self->to != NULL) == (self->checkpoint != NULL))
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "checkpoint extract needs either --to=DIR or --checkpoint=OUT");
  return TRUE;
}

int
muster_cli_checkpoint_extract (int argc, char **argv)
{
  g_auto (Extract) self = {0};
  g_autoptr (GError) error = NULL;
  MusterEditReport report;
  int code;
  const GOptionEntry entries[] = {
      {"variables", 0, 0, G_OPTION_ARG_STRING_ARRAY, &self.patterns,
       "names of variables; may be repeated (required)", "PATTERN"},
      {"to", 0, 0, G_OPTION_ARG_FILENAME, &self.to,
       "write NumPy files below a directory; for one variable, a file that ends in .npy is "
       "possible, too",
       "DIR"},
      {"checkpoint", 0, 0, G_OPTION_ARG_FILENAME, &self.checkpoint, "write a checkpoint", "OUT"},
      {NULL}};
  if (!muster_cli_edit_begin (&self.edit, argc, argv, "PREFIX --variables=PATTERN", summary,
                              entries, 1, 1, &code))
    return code;
  g_autofree char *from =
      check (&self, &error) ? muster_cli_checkpoint_find (self.edit.words[0], &error) : NULL;
  if (from == NULL || !extract (&self, from, &report, &error))
    return muster_cli_edit_fail (&self.edit, error);
  muster_cli_edit_print (&self.edit, "extracted", self.to != NULL ? self.to : self.checkpoint, from,
                         NULL, &report);
  return MUSTER_EXIT_DONE;
}
