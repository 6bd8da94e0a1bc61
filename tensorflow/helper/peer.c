// SPDX-License-Identifier: Apache-2.0
#include "tensorflow/helper/peer.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A line may be missed while other sockets are opened and closed. */
#define MAX_TRIES 3

#define ESTABLISHED 1

typedef enum { OWN, OTHER, ABSENT } Owner;

/* One end of a connection, as the kernel prints it. An IPv4 address is the last eight digits of its
 * form as an IPv6 address. */
typedef struct {
  char digits[33];
  unsigned port;
} End;

/* An IPv4 address is mapped. */
typedef struct in6_addr Machine;

static const char *const tables[] = {"/proc/net/tcp", "/proc/net/tcp6"};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Machine *machines; /* guarded by lock: (owned) those that are admitted */
static size_t n_machines; /* guarded by lock */
static time_t reported;   /* guarded by lock */
static void (*report) (const char *address);

/* --- the machines of a cluster --- */

static Machine
mapped (uint32_t v4)
{
  Machine machine = {.s6_addr = {[10] = 0xff, [11] = 0xff}};
  memcpy (machine.s6_addr + 12, &v4, sizeof v4);
  return machine;
}

/* Its place, or the number of all. The lock is held. */
static size_t
find (const Machine *machine)
{
  size_t i = 0;
  while (i < n_machines && memcmp (&machines[i], machine, sizeof *machine) != 0)
    i++;
  return i;
}

void
muster_peer_admit (const char *address, bool is_admitted)
{
  struct in_addr v4;
  Machine machine;
  if (inet_pton (AF_INET, address, &v4) == 1)
    machine = mapped (v4.s_addr);
  else if (inet_pton (AF_INET6, address, &machine) != 1)
    return;
  pthread_mutex_lock (&lock);
  const size_t i = find (&machine);
  if (!is_admitted && i < n_machines) {
    machines[i] = machines[--n_machines];
  } else if (is_admitted && i == n_machines) {
    Machine *more = realloc (machines, (n_machines + 1) * sizeof *more);
    if (more != NULL) {
      machines = more;
      machines[n_machines++] = machine;
    }
  }
  pthread_mutex_unlock (&lock);
}

static bool
is_admitted (const Machine *machine)
{
  pthread_mutex_lock (&lock);
  const bool is = find (machine) < n_machines;
  pthread_mutex_unlock (&lock);
  return is;
}

void
muster_peer_report (void (*refused) (const char *address))
{
  report = refused;
}

/* A client that has left already, as a probe does, isn't reported. */
static void
refuse (int fd, const Machine *machine)
{
  char byte;
  if (recv (fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
    return;
  char text[INET6_ADDRSTRLEN];
  const bool is_v4 = IN6_IS_ADDR_V4MAPPED (machine);
  struct timespec now;
  clock_gettime (CLOCK_MONOTONIC, &now);
  pthread_mutex_lock (&lock);
  const bool is_news = report != NULL && now.tv_sec != reported;
  reported = now.tv_sec;
  pthread_mutex_unlock (&lock);
  if (is_news && inet_ntop (is_v4 ? AF_INET : AF_INET6, machine->s6_addr + (is_v4 ? 12 : 0), text,
                            sizeof text) != NULL)
    report (text);
}

/* --- the other end's socket on this machine --- */

static Machine
read_end (const struct sockaddr_storage *address, End *end)
{
  const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
  const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
  const bool is_v4 = address->ss_family == AF_INET;
  const Machine machine = is_v4 ? mapped (v4->sin_addr.s_addr) : v6->sin6_addr;
  uint32_t words[4];
  memcpy (words, &machine, sizeof words);
  end->port = ntohs (is_v4 ? v4->sin_port : v6->sin6_port);
  if (IN6_IS_ADDR_V4MAPPED (&machine))
    snprintf (end->digits, sizeof end->digits, "%08X", words[3]);
  else
    snprintf (end->digits, sizeof end->digits, "%08X%08X%08X%08X", words[0], words[1], words[2],
              words[3]);
  return machine;
}

static bool
is_end (const char *text, unsigned port, const End *end)
{
  const size_t n = strlen (text), n_digits = strlen (end->digits);
  return n >= n_digits && strcmp (text + n - n_digits, end->digits) == 0 && port == end->port;
}

/* A socket that nobody has any more has user 0 and inode 0: what it sent is from anybody. */
static Owner
owner_in (const char *line, const End *from, const End *to)
{
  char local[33], remote[33];
  unsigned local_port, remote_port, state, user;
  unsigned long inode;
  if (sscanf (line, " %*u: %32[0-9A-F]:%x %32[0-9A-F]:%x %x %*x:%*x %*x:%*x %*x %u %*d %lu", local,
              &local_port, remote, &remote_port, &state, &user, &inode) != 7 ||
      !is_end (local, local_port, from) || !is_end (remote, remote_port, to))
    return ABSENT;
  return state == ESTABLISHED && inode != 0 && user == geteuid () ? OWN : OTHER;
}

static Owner
find_owner (const char *table, const End *from, const End *to)
{
  char line[512];
  Owner owner = ABSENT;
  FILE *file = fopen (table, "re");
  while (file != NULL && owner == ABSENT && fgets (line, sizeof line, file) != NULL)
    owner = owner_in (line, from, to);
  if (file != NULL)
    fclose (file);
  return owner;
}

/* TRUE also if that can't be found out. */
static bool
is_this_machine (const Machine *machine)
{
  struct ifaddrs *all, *at;
  End unused;
  bool is = IN6_IS_ADDR_LOOPBACK (machine) ||
            (IN6_IS_ADDR_V4MAPPED (machine) && machine->s6_addr[12] == 127);
  if (is || getifaddrs (&all) != 0)
    return true;
  for (at = all; at != NULL && !is; at = at->ifa_next) {
    struct sockaddr_storage address = {0};
    const int family = at->ifa_addr != NULL ? at->ifa_addr->sa_family : AF_UNSPEC;
    if (family != AF_INET && family != AF_INET6)
      continue;
    memcpy (&address, at->ifa_addr,
            family == AF_INET ? sizeof (struct sockaddr_in) : sizeof (struct sockaddr_in6));
    const Machine own = read_end (&address, &unused);
    is = memcmp (&own, machine, sizeof own) == 0;
  }
  freeifaddrs (all);
  return is;
}

/* A socket of this machine that isn't found has gone: what it sent is from anybody. */
static bool
may_connect (const struct sockaddr_storage *here, const struct sockaddr_storage *there,
             Machine *machine)
{
  End from, to;
  *machine = read_end (there, &from);
  (void)read_end (here, &to);
  if (!is_this_machine (machine))
    return is_admitted (machine);
  for (size_t i = 0; i < MAX_TRIES * sizeof tables / sizeof *tables; i++) {
    const Owner owner = find_owner (tables[i % (sizeof tables / sizeof *tables)], &from, &to);
    if (owner != ABSENT)
      return owner == OWN;
  }
  return false;
}

/* TRUE for a connection that isn't TCP: TensorFlow's own to itself. */
static bool
is_welcome (int fd)
{
  struct sockaddr_storage here = {0}, there = {0};
  socklen_t here_size = sizeof here, there_size = sizeof there;
  Machine machine;
  if (getsockname (fd, (struct sockaddr *)&here, &here_size) != 0)
    return false;
  if (here.ss_family != AF_INET && here.ss_family != AF_INET6)
    return true;
  if (getpeername (fd, (struct sockaddr *)&there, &there_size) != 0)
    return false;
  if (may_connect (&here, &there, &machine))
    return true;
  refuse (fd, &machine);
  return false;
}

bool
muster_peer_can_check (void)
{
  FILE *file = fopen (tables[0], "re");
  if (file != NULL)
    fclose (file);
  return file != NULL;
}

/* --- in place of libc's --- */

__attribute__ ((visibility ("default"))) int
accept4 (int listener, struct sockaddr *restrict address, socklen_t *restrict size, int flags)
{
  const socklen_t n_address = size != NULL ? *size : 0;
  for (;;) {
    const int fd = (int)syscall (SYS_accept4, listener, address, size, flags);
    if (fd < 0 || is_welcome (fd))
      return fd;
    close (fd);
    if (size != NULL)
      *size = n_address;
  }
}

__attribute__ ((visibility ("default"))) int
accept (int listener, struct sockaddr *restrict address, socklen_t *restrict size)
{
  return accept4 (listener, address, size, 0);
}
