// SPDX-License-Identifier: Apache-2.0
/* What the tests with TensorFlow ask of muster_saver_build ().
 *
 *   saver_tool build FROM.meta TO.meta [--sharded] [--reshape] [--collect] [--default]
 *     [--scope=S] [--filename=F] [--keep=N] [--list=VARIABLE]... [--map=KEY=VARIABLE]...
 *   saver_tool export FROM.meta TO.meta [--clear-devices] [--clear-savers] [--strip] [--text]
 * [--scope=S] saver_tool import FROM.meta TO.meta [--clear-devices] [--scope=S] */
#include "graph/meta_graph/meta_graph_io.h"
#include "saver/builder/saver_builder.h"

#include <stdio.h>
#include <string.h>

static gboolean sharded, reshape, collect, by_default, clear_devices, clear_savers, strip, as_text;
static char *scope, *filename;
static int keep;
static char **list, **map;

static const GOptionEntry options[] = {
    {"sharded", 0, 0, G_OPTION_ARG_NONE, &sharded, NULL, NULL},
    {"reshape", 0, 0, G_OPTION_ARG_NONE, &reshape, NULL, NULL},
    {"collect", 0, 0, G_OPTION_ARG_NONE, &collect, NULL, NULL},
    {"default", 0, 0, G_OPTION_ARG_NONE, &by_default, NULL, NULL},
    {"clear-devices", 0, 0, G_OPTION_ARG_NONE, &clear_devices, NULL, NULL},
    {"clear-savers", 0, 0, G_OPTION_ARG_NONE, &clear_savers, NULL, NULL},
    {"text", 0, 0, G_OPTION_ARG_NONE, &as_text, NULL, NULL},
    {"strip", 0, 0, G_OPTION_ARG_NONE, &strip, NULL, NULL},
    {"scope", 0, 0, G_OPTION_ARG_STRING, &scope, NULL, NULL},
    {"filename", 0, 0, G_OPTION_ARG_STRING, &filename, NULL, NULL},
    {"keep", 0, 0, G_OPTION_ARG_INT, &keep, NULL, NULL},
    {"list", 0, 0, G_OPTION_ARG_STRING_ARRAY, &list, NULL, NULL},
    {"map", 0, 0, G_OPTION_ARG_STRING_ARRAY, &map, NULL, NULL},
    {0},
};

static int
fail (const GError *error)
{
  fprintf (stderr, "%s\n", error->message);
  return 1;
}

static GArray *
read_map (void)
{
  GArray *entries = g_array_new (FALSE, FALSE, sizeof (MusterSaverKey));
  for (char **entry = map; entry != NULL && *entry != NULL; entry++) {
    char *equals = strchr (*entry, '=');
    *equals = '\0';
    MusterSaverKey one = {*entry, equals + 1};
    g_array_append_val (entries, one);
  }
  return entries;
}

static int
write_meta_graph (MusterMetaGraph *meta_graph, const char *path)
{
  g_autoptr (GError) error = NULL;
  return muster_export_meta_graph (meta_graph, NULL, path, FALSE, &error) ? 0 : fail (error);
}

static int
run_export (const char *from, const char *to)
{
  const MusterExport how = {
      .clear_devices = clear_devices,
      .clear_extraneous_savers = clear_savers,
      .strip_default_attrs = strip,
      .export_scope = scope,
  };
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMetaGraph) before = muster_import_meta_graph (from, NULL, &error);
  return before != NULL && muster_export_meta_graph (before, &how, to, as_text, &error)
             ? 0
             : fail (error);
}

static int
run_import (const char *from, const char *to)
{
  const MusterImport how = {.clear_devices = clear_devices, .import_scope = scope};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMetaGraph) imported = muster_import_meta_graph (from, &how, &error);
  return imported != NULL ? write_meta_graph (imported, to) : fail (error);
}

static int
run_build (const char *from, const char *to)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GArray) entries = read_map ();
  MusterSaverBuild how = {
      .variables = (const char *const *)list,
      .map = entries->len > 0 ? (const MusterSaverKey *)(gpointer)entries->data : NULL,
      .n_map = entries->len,
      .sharded = sharded,
      .reshape = reshape,
      .collect = collect,
      .max_to_keep = keep,
      .scope = scope,
      .filename = filename,
  };
  g_autoptr (MusterMetaGraph) before = muster_meta_graph_load (from, &error);
  g_autoptr (MusterMetaGraph) after = NULL;
  if (before != NULL)
    after = by_default ? muster_saver_default (before, &error)
                       : muster_saver_build (before, &how, &error);
  return after != NULL ? write_meta_graph (after, to) : fail (error);
}

int
main (int argc, char **argv)
{
  g_autoptr (GOptionContext) context = g_option_context_new ("build|export|import FROM TO");
  g_autoptr (GError) error = NULL;
  g_option_context_add_main_entries (context, options, NULL);
  if (!g_option_context_parse (context, &argc, &argv, &error))
    return fail (error);
  if (argc == 4 && strcmp (argv[1], "build") == 0)
    return run_build (argv[2], argv[3]);
  if (argc == 4 && strcmp (argv[1], "export") == 0)
    return run_export (argv[2], argv[3]);
  if (argc == 4 && strcmp (argv[1], "import") == 0)
    return run_import (argv[2], argv[3]);
  fprintf (stderr, "saver_tool build|export|import FROM TO\n");
  return 2;
}
