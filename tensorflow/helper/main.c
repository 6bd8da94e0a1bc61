// SPDX-License-Identifier: Apache-2.0
/* muster-tensorflow LIBRARY [cluster:]PORT [DIRECTORY…]: TensorFlow's own runtime as a process
 * beside muster, which starts it (`--master=tensorflow`). Descriptor 3 is a socket. There it reads
 * a line with a number of bytes, and so many bytes of a ServerDef; for a task of a cluster, then
 * the addresses of machines whose connections it takes: "+ADDRESS", or no longer: "-ADDRESS". It
 * loads LIBRARY, starts TensorFlow's server on 127.0.0.1:PORT, or on all addresses for a cluster,
 * and says so: "loaded", when it has, then in one line "serving VERSION" or "failed CODE REASON".
 * "refused ADDRESS" may come at any time. It ends when the other end of the socket is closed, or
 * its parent dies. */
#include "tensorflow/helper/confine.h"
#include "tensorflow/helper/connection.h"
#include "tensorflow/helper/loopback.h"
#include "tensorflow/helper/peer.h"
#include "tensorflow/helper/server.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define PARENT   3
#define MAX_TEXT 2048
#define INTERNAL 13
#define INVALID  3
/* Of a cluster with 100,000 tasks. */
#define MAX_DEFINITION (64U << 20)

static const char in_cluster[] = "cluster:";

/* Reads n bytes; if the parent ends, so does the process. */
static void
read_from_parent (void *bytes, size_t n)
{
  for (size_t done = 0; done < n;) {
    const ssize_t got = recv (PARENT, (char *)bytes + done, n - done, 0);
    if (got == 0 || (got < 0 && errno != EINTR))
      _exit (0);
    done += got > 0 ? (size_t)got : 0;
  }
}

/* Cut to n_line - 1 characters. */
static void
read_line (char *line, size_t n_line)
{
  size_t n = 0;
  char c;
  for (read_from_parent (&c, 1); c != '\n'; read_from_parent (&c, 1))
    if (n + 1 < n_line)
      line[n++] = c;
  line[n] = '\0';
}

/* The ServerDef; NULL if it is none. */
static void *
read_definition (size_t *size)
{
  char line[32];
  read_line (line, sizeof line);
  *size = strtoul (line, NULL, 10);
  void *definition = *size > 0 && *size <= MAX_DEFINITION ? malloc (*size) : NULL;
  if (definition != NULL)
    read_from_parent (definition, *size);
  return definition;
}

/* Ends with the parent. */
static void *
listen_to_parent (void *data)
{
  for (char line[64];;) {
    read_line (line, sizeof line);
    if (*line == '+' || *line == '-')
      muster_peer_admit (line + 1, *line == '+');
  }
  return data;
}

/* The parent may have blocked signals; and Ctrl-C is for the parent, which decides when this
 * process ends. */
static void
settle_signals (void)
{
  sigset_t none;
  sigemptyset (&none);
  sigprocmask (SIG_SETMASK, &none, NULL);
  signal (SIGPIPE, SIG_IGN);
  signal (SIGXFSZ, SIG_IGN);
  setpgid (0, 0);
}

/* If the parent is gone, the process ends. */
static void
report_to_parent (const char *what, char *text)
{
  char line[MAX_TEXT + 64];
  for (char *c = text; *c != '\0'; c++)
    if (*c == '\n' || *c == '\r')
      *c = ' ';
  int n = snprintf (line, sizeof line, "%s%s\n", what, text);
  if (send (PARENT, line, (size_t)n, MSG_NOSIGNAL) != n)
    _exit (0);
}

static void
report_loaded (void)
{
  char nothing[] = "";
  report_to_parent ("loaded", nothing);
}

/* What can't be sent at once isn't worth a wait. */
static void
report_refused (const char *address)
{
  char line[MAX_TEXT];
  const int n = snprintf (line, sizeof line, "refused %s\n", address);
  (void)!send (PARENT, line, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static int
fail_start (int code, char *reason)
{
  char what[32];
  snprintf (what, sizeof what, "failed %d ", code);
  report_to_parent (what, reason);
  return 1;
}

int
main (int argc, char **argv)
{
  int type;
  socklen_t size = sizeof type;
  char *end = NULL;
  const bool is_task = argc >= 3 && strncmp (argv[2], in_cluster, sizeof in_cluster - 1) == 0;
  const char *number = argc >= 3 ? argv[2] + (is_task ? sizeof in_cluster - 1 : 0) : "";
  const unsigned long port = strtoul (number, &end, 10);
  if (port == 0 || port > 65535 || *end != '\0' ||
      getsockopt (PARENT, SOL_SOCKET, SO_TYPE, &type, &size) != 0) {
    fprintf (
        stderr,
        "muster-tensorflow: started by muster for --master=tensorflow; don't run it directly\n");
    return 2;
  }
  prctl (PR_SET_PDEATHSIG, SIGKILL);
  fcntl (PARENT, F_SETFD, FD_CLOEXEC);
  settle_signals ();
  char text[MAX_TEXT] = "", wrong[MAX_TEXT];
  size_t n_definition;
  void *definition = read_definition (&n_definition);
  if (definition == NULL)
    return 1;
  if (argc > 3 && !muster_confine (argv + 3, argv[1], text, sizeof text))
    return fail_start (INVALID, text);
  pthread_t watcher;
  if (pthread_create (&watcher, NULL, listen_to_parent, NULL) != 0)
    return 1;

  int code;
  if (!muster_peer_can_check ()) {
    snprintf (text, sizeof text, "can't read /proc/net/tcp to check who connects to it");
    return fail_start (INTERNAL, text);
  }
  muster_loopback_share ((uint16_t)port, is_task);
  if (is_task) {
    muster_peer_report (report_refused);
    if (!muster_connection_limit_silence ())
      return 1;
  }
  if (!muster_server_in_process (argv[1], definition, n_definition, report_loaded, text,
                                 sizeof text, &code))
    return fail_start (code, text);
  if (!muster_loopback_check (wrong, sizeof wrong))
    return fail_start (INTERNAL, wrong);
  report_to_parent ("serving ", text);
  pthread_join (watcher, NULL);
  return 0;
}
