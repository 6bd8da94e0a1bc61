// SPDX-License-Identifier: Apache-2.0
#include "cli/common/example.h"

#include "base/error.h"

#include <string.h>

#define FLAG  "--example"
#define MODEL "digits.meta"

/* The value that the command sets is the last, so words of the user's own come after these. */
static const struct {
  const char *word;
  const char *const *unless; /* one of these is given */
} defaults[] = {
    {"--master=local", (const char *const[]){"--master", NULL}},
    {"--loss=loss:0", (const char *const[]){"--loss", NULL}},
    {"--epochs=20", (const char *const[]){"--epochs", "--steps", NULL}},
};

/* "--steps" is given as "--steps=9" or "--steps". */
static gboolean
is_given (char *const *argv, const char *option)
{
  const gsize length = strlen (option);
  for (; *argv != NULL && strcmp (*argv, "--") != 0; argv++)
    if (strncmp (*argv, option, length) == 0 && ((*argv)[length] == '\0' || (*argv)[length] == '='))
      return TRUE;
  return FALSE;
}

static gboolean
is_any_given (char *const *argv, const char *const *options)
{
  for (; *options != NULL; options++)
    if (is_given (argv, *options))
      return TRUE;
  return FALSE;
}

/* The directory of the example's files: share/muster/examples beside the command's bin. */
static char *
find_files (GError **error)
{
  const char *named = g_getenv ("MUSTER_EXAMPLES");
  g_autofree char *program = g_file_read_link ("/proc/self/exe", NULL);
  g_autofree char *bin = g_path_get_dirname (program != NULL ? program : ".");
  g_autofree char *beside = g_build_filename (bin, "../share/muster/examples", NULL);
  g_autofree char *folder =
      g_canonicalize_filename (named != NULL && *named != '\0' ? named : beside, NULL);
  g_autofree char *model = g_build_filename (folder, MODEL, NULL);
  if (g_file_test (model, G_FILE_TEST_EXISTS))
    return g_steal_pointer (&folder);
  muster_fail (error, MUSTER_ERROR_NOT_FOUND,
               "train: the example isn't installed (searched '%s'); set MUSTER_EXAMPLES to the "
               "directory of " MODEL ", images.npy and labels.npy",
               folder);
  return NULL;
}

char **
muster_cli_example_expand (char *const *argv, GError **error)
{
  static const char *const own[] = {"--meta-graph", "--feed", NULL};
  if (!is_given (argv, FLAG) || is_any_given (argv, (const char *const[]){"--help", "-h", NULL}))
    return g_strdupv ((char **)argv);
  if (is_any_given (argv, own)) {
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "train: --example can't be combined with --meta-graph or --feed, which it sets");
    return NULL;
  }
  g_autofree char *folder = find_files (error);
  if (folder == NULL)
    return NULL;
  g_autoptr (GStrvBuilder) words = g_strv_builder_new ();
  g_autofree char *model = g_strdup_printf ("--meta-graph=%s/" MODEL, folder);
  g_autofree char *images = g_strdup_printf ("--feed=x:0=@%s/images.npy", folder);
  g_autofree char *labels = g_strdup_printf ("--feed=y:0=@%s/labels.npy", folder);
  g_strv_builder_add_many (words, argv[0], model, images, labels, NULL);
  for (gsize i = 0; i < G_N_ELEMENTS (defaults); i++)
    if (!is_any_given (argv, defaults[i].unless))
      g_strv_builder_add (words, defaults[i].word);
  g_strv_builder_addv (words, (const char **)argv + 1);
  return g_strv_builder_end (words);
}

char *
muster_cli_example_command (char *const *words)
{
  static const char plain[] = G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "-_=:@/.,%+";
  GString *text = g_string_new ("muster");
  for (; *words != NULL; words++) {
    g_autofree char *quoted = g_shell_quote (*words);
    const gboolean is_plain = **words != '\0' && (*words)[strspn (*words, plain)] == '\0';
    if (strcmp (*words, FLAG) != 0)
      g_string_append_printf (text, " %s", is_plain ? *words : quoted);
  }
  return g_string_free (text, FALSE);
}
