// SPDX-License-Identifier: Apache-2.0
/* A command whose options are the fields of a struct, one of which was added to its header
 * (grown.h): "setting try [OPTION…]". It prints the setting that was added. --config=FILE is read
 * as serve does, --set=NAME=VALUE sets a field by its name, as Python does. */
#include "base/fields_private.h"
#include "base/options.h"
#include "cli/common/cli.h"
#include "cli/common/config_file.h"
#include "cli/common/flags.h"
#include "tests/cli/grown.h"

#include <string.h>

MUSTER_DEFINE_OPTIONS (MusterPart, muster_part)
MUSTER_DEFINE_OPTIONS (MusterSample, muster_sample)

typedef struct {
  char *config, *set;
} Own;

static const GOptionEntry own[] = {{"config", 0, 0, G_OPTION_ARG_FILENAME,
                                    MUSTER_CLI_AT (Own, config), "file with options", "FILE"},
                                   {"set", 0, 0, G_OPTION_ARG_STRING, MUSTER_CLI_AT (Own, set),
                                    "a field by its name", "NAME=VALUE"},
                                   {NULL}};

static gboolean
set (MusterSample *options, const char *text, GError **error)
{
  g_auto (GStrv) pair = g_strsplit (text, "=", 2);
  g_auto (GValue) value = G_VALUE_INIT;
  g_auto (GValue) holder = G_VALUE_INIT;
  g_value_init (&value, G_TYPE_INT64);
  g_value_set_int64 (&value, g_ascii_strtoll (pair[1], NULL, 10));
  g_value_init (&holder, muster_sample_get_type ());
  g_value_set_static_boxed (&holder, options);
  return muster_options_set (&holder, pair[0], &value, error);
}

static char **
merge (char **argv, const GOptionEntry *entries, GError **error)
{
  if (argv[1] == NULL || !g_str_has_prefix (argv[1], "--config="))
    return g_strdupv (argv);
  g_autoptr (MusterConfigFile) file =
      muster_config_file_load (argv[1] + strlen ("--config="), "try", error);
  return file != NULL ? muster_config_file_merge (file, entries, argv, error) : NULL;
}

static gboolean
run (char **argv, Own *words, MusterSample *options, MusterFlags *flags, GError **error)
{
  g_auto (MusterCliOptions) none = {0};
  muster_flags_add (flags, own, words);
  muster_flags_add_options (flags, muster_sample_get_type (), options);
  g_auto (GStrv) given = merge (argv, muster_flags_entries (flags), error);
  if (given == NULL ||
      !muster_cli_parse ((int)g_strv_length (given), given, "", "Tries a setting.\n",
                         muster_flags_entries (flags), 0, &none, NULL, error) ||
      !muster_flags_apply (flags, error) ||
      (words->set != NULL && !set (options, words->set, error)))
    return FALSE;
  printf ("patience %u name %s share %g part %s colour %d\n", options->patience,
          options->name != NULL ? options->name : "-", options->share,
          options->part.text != NULL ? options->part.text : "-", (int)options->colour);
  return TRUE;
}

int
main (int argc, char **argv)
{
  Own words = {0};
  MusterSample options = {0};
  g_autoptr (GError) error = NULL;
  if (argc > 1 && strcmp (argv[1], "twice") == 0) {
    g_autoptr (MusterFlags) twice = muster_flags_new ("twice");
    muster_flags_add_options (twice, muster_sample_get_type (), &options);
    muster_flags_add_options (twice, muster_sample_get_type (), &options);
  }
  if (argc > 1 && strcmp (argv[1], "--help") == 0) {
    printf ("Usage:\n  muster COMMAND [OPTION…]\n\nCommands:\n  try  tries a setting\n\n");
    return 0;
  }
  g_autoptr (MusterFlags) flags = muster_flags_new ("try");
  const gboolean is_run = run (argv + 1, &words, &options, flags, &error);
  g_free (words.config);
  g_free (words.set);
  return is_run ? 0 : muster_cli_fail (error);
}
