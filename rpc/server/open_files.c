// SPDX-License-Identifier: Apache-2.0
#include "rpc/server/open_files.h"

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

static rlim_t
find_limit (void)
{
  struct rlimit limit;
  return getrlimit (RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

int
muster_open_files_raise (void)
{
  struct rlimit limit;
  if (getrlimit (RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit (RLIMIT_NOFILE, &limit);
  }
  return (int)MIN (find_limit (), (rlim_t)G_MAXINT);
}

gboolean
muster_open_files_left (guint reserve)
{
  int lowest = eventfd (0, EFD_CLOEXEC);
  if (lowest < 0)
    return FALSE;
  close (lowest);
  return (rlim_t)lowest + reserve < find_limit ();
}
