// SPDX-License-Identifier: Apache-2.0
/* muster-tensorflow LIBRARY PORT [DIRECTORY…]: TensorFlow's own runtime as a process beside muster,
 * which starts it (`--master=tensorflow`). It loads LIBRARY, starts TensorFlow's server on
 * 127.0.0.1:PORT and says so on descriptor 3, a socket: "loaded", when it has, then in one line
 * "serving VERSION" or "failed CODE REASON". It ends when the other end of that socket is closed,
 * or its parent dies. */
#include "tensorflow/helper/confine.h"
#include "tensorflow/helper/loopback.h"
#include "tensorflow/helper/peer.h"
#include "tensorflow/helper/server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
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

/* The parent never sends anything: the socket becomes readable when the parent ends. */
static void *
end_with_parent (void *data)
{
  (void)data;
  struct pollfd parent = {.fd = PARENT, .events = POLLIN};
  char byte;
  for (;;) {
    int n = poll (&parent, 1, -1);
    if (n < 0 && errno != EINTR)
      _exit (1);
    if (n > 0 && recv (PARENT, &byte, 1, MSG_DONTWAIT) <= 0 && errno != EINTR && errno != EAGAIN)
      _exit (0);
  }
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
  unsigned long port = argc >= 3 ? strtoul (argv[2], &end, 10) : 0;
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
  if (argc > 3 && !muster_confine (argv + 3, argv[1], text, sizeof text))
    return fail_start (INVALID, text);
  pthread_t watcher;
  if (pthread_create (&watcher, NULL, end_with_parent, NULL) != 0)
    return 1;

  int code;
  if (!muster_peer_can_check ()) {
    snprintf (text, sizeof text, "can't read /proc/net/tcp to check who connects to it");
    return fail_start (INTERNAL, text);
  }
  muster_loopback_share ((uint16_t)port);
  if (!muster_server_in_process (argv[1], (uint16_t)port, report_loaded, text, sizeof text, &code))
    return fail_start (code, text);
  if (!muster_loopback_check ((uint16_t)port, wrong, sizeof wrong))
    return fail_start (INTERNAL, wrong);
  report_to_parent ("serving ", text);
  pthread_join (watcher, NULL);
  return 0;
}
