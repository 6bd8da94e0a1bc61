// SPDX-License-Identifier: Apache-2.0
/* Confines the helper to data directories by Landlock, before it loads TensorFlow: it keeps what
 * the library and the GPUs' drivers need. */
#include "tensorflow/helper/confine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Linux 5.19's: since then, files may be moved between directories. Linux 6.2's bounds truncate (),
 * which earlier kernels leave alone. */
#define LEAST_ABI    2
#define TRUNCATE_ABI 3
#define TRUNCATE     (1ULL << 14)

#define OF_A_FILE                                                                                  \
  (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE |     \
   TRUNCATE)
#define READ                                                                                       \
  (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define WRITE (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE)
#define ALL   ((1ULL << 14) - 1)

/* Programs and libraries; names, hosts and time zones; what describes the machine and this process.
 * Not its environment, nor other processes. */
static const char *const readable[] = {
    "/usr",
    "/lib",
    "/lib64",
    "/opt",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/nsswitch.conf",
    "/etc/resolv.conf",
    "/etc/gai.conf",
    "/etc/localtime",
    "/sys",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/filesystems",
    "/proc/sys/vm",
    "/proc/sys/kernel",
    "/proc/driver",
    "/proc/devices",
    "/proc/self/fd",
    "/proc/self/net",
    "/proc/self/maps",
    "/proc/self/status",
    "/proc/self/stat",
    "/proc/self/statm",
    "/proc/self/cgroup",
    "/proc/self/mountinfo",
    "/proc/self/limits",
};
static const char *const devices[] = {"/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"};

static bool
allow (int rules, const char *path, uint64_t access, uint64_t handled)
{
  struct stat st;
  struct landlock_path_beneath_attr rule = {.allowed_access = access & handled};
  rule.parent_fd = open (path, O_PATH | O_CLOEXEC);
  if (rule.parent_fd < 0)
    return false;
  if (fstat (rule.parent_fd, &st) == 0 && !S_ISDIR (st.st_mode))
    rule.allowed_access &= OF_A_FILE;
  const bool is_added =
      syscall (SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
  const int why = errno;
  close (rule.parent_fd);
  errno = why;
  return is_added;
}

/* GPUs. */
static void
allow_nvidia (int rules, uint64_t handled)
{
  DIR *dev = opendir ("/dev");
  for (struct dirent *entry; dev != NULL && (entry = readdir (dev)) != NULL;) {
    char path[sizeof "/dev/" + sizeof entry->d_name];
    snprintf (path, sizeof path, "/dev/%s", entry->d_name);
    if (strncmp (entry->d_name, "nvidia", strlen ("nvidia")) == 0)
      (void)allow (rules, path, WRITE, handled);
  }
  if (dev != NULL)
    closedir (dev);
}

/* The library's folder. If that is Python's package, also the packages beside it, on which it may
 * depend; the folder above any other one may be somebody's home. */
static void
allow_library (int rules, const char *library, uint64_t handled)
{
  char path[PATH_MAX];
  char *slash = realpath (library, path) != NULL ? strrchr (path, '/') : NULL;
  if (slash == NULL || slash == path)
    return; /* loading it says why */
  *slash = '\0';
  (void)allow (rules, path, READ, handled);
  slash = strrchr (path, '/');
  if (slash == path || strcmp (slash, "/tensorflow") != 0)
    return;
  *slash = '\0';
  (void)allow (rules, path, READ, handled);
}

/* A path that doesn't exist needs no rule. */
static void
allow_system (int rules, const char *library, uint64_t handled)
{
  for (size_t i = 0; i < sizeof readable / sizeof *readable; i++)
    (void)allow (rules, readable[i], READ, handled);
  for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
    (void)allow (rules, devices[i], WRITE, handled);
  allow_nvidia (rules, handled);
  allow_library (rules, library, handled);
}

static int
make_rules (uint64_t *handled, char *text, size_t n_text)
{
  const long abi = syscall (SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
  const struct landlock_ruleset_attr attributes = {.handled_access_fs =
                                                       abi >= TRUNCATE_ABI ? ALL | TRUNCATE : ALL};
  if (abi < LEAST_ABI) {
    snprintf (text, n_text,
              "--data-dir can't confine TensorFlow: the kernel has no Landlock (Linux 5.19 has it, "
              "unless it is turned off)");
    return -1;
  }
  *handled = attributes.handled_access_fs;
  const int rules = (int)syscall (SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0);
  if (rules < 0)
    snprintf (text, n_text, "--data-dir can't confine TensorFlow: %s", strerror (errno));
  return rules;
}

bool
muster_confine (char *const *directories, const char *library, char *text, size_t n_text)
{
  uint64_t handled;
  const int rules = make_rules (&handled, text, n_text);
  if (rules < 0)
    return false;
  allow_system (rules, library, handled);
  for (; *directories != NULL; directories++) {
    if (allow (rules, *directories, handled & ~LANDLOCK_ACCESS_FS_EXECUTE, handled))
      continue;
    snprintf (text, n_text, "invalid data directory '%s': %s", *directories, strerror (errno));
    close (rules);
    return false;
  }
  const bool is_confined = prctl (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                           syscall (SYS_landlock_restrict_self, rules, 0) == 0;
  if (!is_confined)
    snprintf (text, n_text, "--data-dir can't confine TensorFlow: %s", strerror (errno));
  close (rules);
  return is_confined;
}
