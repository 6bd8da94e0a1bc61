// SPDX-License-Identifier: Apache-2.0
#include "base/memory_private.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define GROUPS      "/proc/self/cgroup"
#define GROUPS_ROOT "/sys/fs/cgroup"

#define HUGE_PAGE ((gsize)2 << 20)
#define LARGE     ((gsize)4 << 20)

static guint64
read_limit (const char *folder, const char *file)
{
  g_autofree char *path = g_build_filename (folder, file, NULL), *text = NULL;
  guint64 limit;
  if (!g_file_get_contents (path, &text, NULL, NULL) ||
      !g_ascii_string_to_unsigned (g_strchomp (text), 10, 0, G_MAXUINT64, &limit, NULL))
    return G_MAXUINT64; /* "max", or the root's, which has no such file */
  return limit;
}

/* The lowest limit in a group's folder and those around it, up to the root. In a container the path
 * may be the host's, and only the root be there: the container's own. */
static guint64
lowest_limit (const char *root, const char *group, const char *file)
{
  guint64 least = G_MAXUINT64;
  g_autofree char *folder = g_build_filename (root, group, NULL);
  while (g_str_has_prefix (folder, root)) {
    least = MIN (least, read_limit (folder, file));
    g_autofree char *below = g_steal_pointer (&folder);
    folder = g_path_get_dirname (below);
  }
  return least;
}

/* A line is NUMBER:CONTROLLERS:GROUP. Version 2's has no controllers; version 1 has a folder for
 * each. Above memory.high a process isn't ended, but hardly runs. */
static guint64
limit_of_line (const char *line, const char *root)
{
  g_auto (GStrv) parts = g_strsplit (line, ":", 3);
  if (g_strv_length (parts) != 3)
    return G_MAXUINT64;
  if (*parts[1] == '\0')
    return MIN (lowest_limit (root, parts[2], "memory.max"),
                lowest_limit (root, parts[2], "memory.high"));
  g_auto (GStrv) controllers = g_strsplit (parts[1], ",", -1);
  if (!g_strv_contains ((const char *const *)controllers, "memory"))
    return G_MAXUINT64;
  g_autofree char *memory = g_build_filename (root, "memory", NULL);
  return lowest_limit (memory, parts[2], "memory.limit_in_bytes");
}

guint64
muster_memory_group_limit (const char *cgroups, const char *root)
{
  g_auto (GStrv) lines = g_strsplit (cgroups, "\n", -1);
  guint64 least = G_MAXUINT64;
  for (char **line = lines; *line != NULL; line++)
    least = MIN (least, limit_of_line (*line, root));
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
