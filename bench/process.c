// SPDX-License-Identifier: Apache-2.0
/* What the system knows of a process. */
#include "bench/bench.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static char *
read_proc (int pid, const char *name)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = g_strdup_printf ("/proc/%d/%s", pid, name);
  char *text = NULL;
  g_file_get_contents (path, &text, NULL, &error);
  bench_check (error, "asking the system about a server");
  return text;
}

double
bench_cpu_s (int pid)
{
  g_autofree char *text = read_proc (pid, "stat");
  const char *after_name = strrchr (text, ')'); /* the name may hold anything */
  unsigned long user, system;
  if (after_name == NULL ||
      sscanf (after_name, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
              &system) != 2)
    bench_fail ("/proc/%d/stat isn't as it is known: '%s'", pid, text);
  return (double)(user + system) / (double)sysconf (_SC_CLK_TCK);
}

double
bench_fine_cpu_s (int pid)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = g_strdup_printf ("/proc/%d/task", pid);
  g_autoptr (GDir) threads = g_dir_open (path, 0, &error);
  const char *thread;
  double total_s = 0;
  bench_check (error, "asking the system about a process");
  while ((thread = g_dir_read_name (threads)) != NULL) {
    g_autofree char *name = g_strdup_printf ("task/%s/schedstat", thread);
    g_autofree char *text = read_proc (pid, name);
    total_s += g_ascii_strtod (text, NULL) / 1e9;
  }
  return total_s;
}

double
bench_resident_bytes (int pid)
{
  g_autofree char *text = read_proc (pid, "statm");
  unsigned long pages;
  if (sscanf (text, "%*u %lu", &pages) != 1)
    bench_fail ("/proc/%d/statm isn't as it is known: '%s'", pid, text);
  return (double)pages * (double)sysconf (_SC_PAGESIZE);
}

double
bench_peak_bytes (int pid)
{
  g_autofree char *text = read_proc (pid, "status");
  const char *line = strstr (text, "VmHWM:");
  unsigned long kilobytes;
  if (line == NULL || sscanf (line, "VmHWM: %lu", &kilobytes) != 1)
    bench_fail ("/proc/%d/status isn't as it is known: '%s'", pid, text);
  return (double)kilobytes * 1024;
}

void
bench_need_files (int pid, guint n)
{
  struct rlimit ours, theirs;
  if (getrlimit (RLIMIT_NOFILE, &ours) != 0 || prlimit (pid, RLIMIT_NOFILE, NULL, &theirs) != 0)
    bench_fail ("how many files may be open: %s", g_strerror (errno));
  if (ours.rlim_cur < n) {
    ours.rlim_cur = MIN ((rlim_t)n, ours.rlim_max);
    (void)setrlimit (RLIMIT_NOFILE, &ours); /* what came of it is seen next */
  }
  if (ours.rlim_cur < n || theirs.rlim_cur < n)
    bench_fail ("%u open files are needed, but %lu may be open here and %lu at the server: raise "
                "'ulimit -n'",
                n, (unsigned long)ours.rlim_cur, (unsigned long)theirs.rlim_cur);
}

char *
bench_make_folder (void)
{
  g_autoptr (GError) error = NULL;
  char *path = g_dir_make_tmp ("muster-bench-XXXXXX", &error);
  bench_check (error, "making a folder");
  return path;
}

void
bench_remove_folder (const char *path)
{
  g_autoptr (GDir) folder = g_dir_open (path, 0, NULL);
  const char *name;
  while (folder != NULL && (name = g_dir_read_name (folder)) != NULL) {
    g_autofree char *file = g_build_filename (path, name, NULL);
    (void)g_unlink (file);
  }
  (void)g_rmdir (path);
}
