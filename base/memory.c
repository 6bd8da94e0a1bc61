// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define GROUPS      "/proc/self/cgroup"
#define GROUPS_ROOT "/sys/fs/cgroup"
/* Version 2's only line. */
#define PREFIX "0::/"

#define HUGE_PAGE ((gsize)2 << 20)
#define LARGE     ((gsize)4 << 20)

static guint64
read_limit (const char *folder)
{
  g_autofree char *path = g_build_filename (folder, "memory.max", NULL), *text = NULL;
  guint64 limit;
  if (!g_file_get_contents (path, &text, NULL, NULL) ||
      !g_ascii_string_to_unsigned (g_strchomp (text), 10, 0, G_MAXUINT64, &limit, NULL))
    return G_MAXUINT64; /* "max", or the root's, which has no such file */
  return limit;
}

guint64
muster_memory_group_limit (const char *cgroups, const char *root)
{
  g_auto (GStrv) lines = g_strsplit (cgroups, "\n", -1);
  guint64 least = G_MAXUINT64;
  for (char **line = lines; *line != NULL; line++) {
    if (!g_str_has_prefix (*line, PREFIX))
      continue;
    g_autofree char *folder = g_build_filename (root, *line + strlen (PREFIX), NULL);
    while (g_str_has_prefix (folder, root)) {
      least = MIN (least, read_limit (folder));
      g_autofree char *below = g_steal_pointer (&folder);
      folder = g_path_get_dirname (below);
    }
  }
  return least;
}

guint64
muster_memory_total (void)
{
  const glong n_pages = sysconf (_SC_PHYS_PAGES), page_size = sysconf (_SC_PAGESIZE);
  const guint64 machine =
      n_pages > 0 && page_size > 0 ? (guint64)n_pages * (guint64)page_size : G_MAXINT32;
  g_autofree char *cgroups = NULL;
  if (!g_file_get_contents (GROUPS, &cgroups, NULL, NULL))
    return machine;
  return MIN (machine, muster_memory_group_limit (cgroups, GROUPS_ROOT));
}

gpointer
muster_memory_alloc (gsize size)
{
  if (size < LARGE || size > G_MAXSSIZE)
    return malloc (MAX (size, 1));
  const gsize rounded = (size + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
  gpointer memory = aligned_alloc (HUGE_PAGE, rounded);
  if (memory != NULL)
    (void)madvise (memory, rounded, MADV_HUGEPAGE); /* only advice: may fail */
  return memory;
}
