// SPDX-License-Identifier: Apache-2.0
/* What the tests with TensorFlow ask of muster_saver_build ().
 *
 *   saver_tool build FROM.meta TO.meta [--sharded] [--reshape] [--collect] [--default]
 *     [--scope=S] [--filename=F] [--keep=N] [--list=VARIABLE]... [--map=KEY=VARIABLE]... */
#include "saver/saver_builder.h"

#include <stdio.h>
#include <string.h>

static gboolean sharded, reshape, collect, by_default;
static char *scope, *filename;
static int keep;
static char **list, **map;

static const GOptionEntry options[] = {
    {"sharded", 0, 0, G_OPTION_ARG_NONE, &sharded, NULL, NULL},
    {"reshape", 0, 0, G_OPTION_ARG_NONE, &reshape, NULL, NULL},
    {"collect", 0, 0, G_OPTION_ARG_NONE, &collect, NULL, NULL},
    {"default", 0, 0, G_OPTION_ARG_NONE, &by_default, NULL, NULL},
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

  for (char **entry = map; entry && *entry; entry++) {
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
  gsize size;
  gconstpointer data = g_bytes_get_data (muster_meta_graph_bytes (meta_graph), &size);

  return g_file_set_contents (path, data, (gssize)size, &error) ? 0 : fail (error);
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

  if (before)
    after = by_default ? muster_saver_default (before, &error)
                       : muster_saver_build (before, &how, &error);

  return after ? write_meta_graph (after, to) : fail (error);
}

int
main (int argc, char **argv)
{
  g_autoptr (GOptionContext) context = g_option_context_new ("build FROM TO");
  g_autoptr (GError) error = NULL;

  g_option_context_add_main_entries (context, options, NULL);
  if (!g_option_context_parse (context, &argc, &argv, &error))
    return fail (error);
  if (argc == 4 && strcmp (argv[1], "build") == 0)
    return run_build (argv[2], argv[3]);
  fprintf (stderr, "saver_tool build FROM TO\n");

  return 2;
}
