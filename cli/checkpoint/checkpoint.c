// SPDX-License-Identifier: Apache-2.0
#include "cli/checkpoint/checkpoint.h"

#include "checkpoint/state/checkpoint_state.h"
#include "cli/checkpoint/checkpoint_open.h"
#include "cli/common/cli.h"
#include "cli/common/nearest.h"
#include "cli/output/json.h"
#include "cli/output/table.h"

#include <string.h>

static const char about[] = "Inspects, keeps, prunes and edits checkpoints: those of muster and "
                            "TensorFlow, object-based checkpoints\n"
                            "and SavedModels.";

static const struct {
  const char *verb, *words;
  int (*run) (int argc, char **argv);
  const char *what;
} verbs[] = {
    {"list", "DIR…", muster_cli_checkpoint_list,
     "list the checkpoints of a directory, or of a job's: prefix, age, size, why it is kept, and "
     "state"},
    {"show", "PREFIX [TENSOR]", muster_cli_checkpoint_show,
     "list a checkpoint's tensors, or show one with its values"},
    {"latest", "DIR", muster_cli_checkpoint_latest, "print the prefix of the latest checkpoint"},
    {"verify", "PREFIX|DIR", muster_cli_checkpoint_verify, "read all data and report damage"},
    {"diff", "A B", muster_cli_checkpoint_diff, "compare two checkpoints"},
    {"prune", "DIR… --keep=N", muster_cli_checkpoint_prune, "remove the oldest checkpoints"},
    {"pin", "PREFIX|DIR…", muster_cli_checkpoint_pin, "keep checkpoints until they are unpinned"},
    {"unpin", "PREFIX|DIR…", muster_cli_checkpoint_unpin, "remove pins"},
    {"mark", "PREFIX|DIR --metric=NAME=VALUE", muster_cli_checkpoint_mark,
     "record how good a checkpoint is"},
    {"copy", "FROM TO", muster_cli_checkpoint_copy,
     "copy a checkpoint, or all of a directory, to another directory"},
    {"merge", "OUT IN…", muster_cli_checkpoint_merge, "average checkpoints of one model"},
    {"extract", "PREFIX --variables=PATTERN", muster_cli_checkpoint_extract,
     "write some variables to NumPy files, or to a smaller checkpoint"},
    {"rename", "PREFIX OUT --map=OLD=NEW", muster_cli_checkpoint_rename,
     "write a checkpoint with other names for its variables"},
};

int
muster_cli_checkpoint_latest (int argc, char **argv)
{
  g_auto (MusterCliOptions) options = {0};
  g_auto (GStrv) words = NULL;
  g_autoptr (GError) error = NULL;
  int code;
  if (!muster_cli_checkpoint_parse (argc, argv, "DIR",
                                    "Prints the prefix of a directory's latest checkpoint, as its "
                                    "file 'checkpoint' names it.",
                                    NULL, 1, 1, &options, &words, &code))
    return code;
  g_autofree char *prefix = muster_latest_checkpoint (muster_cli_storage (), words[0], &error);
  if (error == NULL && prefix == NULL)
    muster_fail (&error, MUSTER_ERROR_NOT_FOUND,
                 "no checkpoint in '%s': it has no file 'checkpoint'", words[0]);
  if (error != NULL)
    return muster_cli_fail (error);
  if (!options.json) {
    if (muster_cli_is_terminal (stdout))
      muster_cli_say (stdout, "%s\n", prefix);
    else
      printf ("%s\n", prefix); /* verbatim, for scripts */
    return MUSTER_EXIT_DONE;
  }
  g_autoptr (JsonBuilder) builder = muster_json_new_line ();
  muster_json_add_string (builder, "latest", prefix);
  muster_json_add_step (builder, "step", muster_checkpoint_step (prefix));
  muster_json_print_line (builder);
  return MUSTER_EXIT_DONE;
}

static const char rest[] = "All verbs accept --json. Help for a verb: muster help checkpoint VERB";

/* Prints the usage: to stdout if it was requested, else to stderr. */
static int
print_usage (gboolean asked)
{
  FILE *to = asked ? stdout : stderr;
  const guint columns = muster_cli_terminal_columns (to);
  g_autofree char *before = muster_cli_wrap (about, columns);
  g_autofree char *after = muster_cli_wrap (rest, columns);
  g_autoptr (MusterTable) table = muster_table_new (2);
  for (gsize i = 0; i < G_N_ELEMENTS (verbs); i++) {
    g_autofree char *name = g_strdup_printf ("  %s %s", verbs[i].verb, verbs[i].words);
    muster_table_add (table, name, verbs[i].what, NULL);
  }
  muster_cli_put (to, "Usage: muster checkpoint VERB [OPTION…]\n\n%s\n", before);
  muster_table_print (table, to);
  muster_cli_put (to, "\n%s", after);
  return asked ? MUSTER_EXIT_DONE : MUSTER_EXIT_BAD_INPUT;
}

static int
refuse (const char *verb)
{
  MusterNearest nearest;
  muster_nearest_begin (&nearest, verb);
  for (gsize i = 0; i < G_N_ELEMENTS (verbs); i++)
    muster_nearest_try (&nearest, verbs[i].verb);
  g_autofree char *meant = muster_nearest_text (&nearest, "");
  muster_cli_say (stderr, "muster: checkpoint: unknown verb '%s'%s\n\n", verb, meant);
  return print_usage (FALSE);
}

/* The first word is the verb, wherever the options are. */
int
muster_cli_checkpoint (int argc, char **argv)
{
  int at = 1;
  while (at < argc && argv[at][0] == '-')
    at++;
  if (at == argc)
    return print_usage (argc > 1 &&
                        (strcmp (argv[1], "--help") == 0 || strcmp (argv[1], "-h") == 0));
  for (gsize i = 0; i < G_N_ELEMENTS (verbs); i++) {
    if (strcmp (argv[at], verbs[i].verb) != 0)
      continue;
    g_autofree char *name = g_strdup_printf ("checkpoint %s", verbs[i].verb);
    g_autofree char **rest = g_new0 (char *, argc);
    int n = 0;
    rest[n++] = name;
    for (int j = 1; j < argc; j++)
      if (j != at)
        rest[n++] = argv[j];
    return verbs[i].run (n, rest);
  }
  return refuse (argv[at]);
}
