// SPDX-License-Identifier: Apache-2.0
/* What muster-tensorflow uses of TensorFlow's library: a server that listens on every interface, as
 * TensorFlow's does, and accepts and drops. $MUSTER_FAKE_TENSORFLOW says how it misbehaves. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct TF_Status {
  int code;
  const char *message;
} TF_Status;

typedef struct TF_Server {
  int listener;
} TF_Server;

static bool
is_to (const char *what)
{
  const char *told = getenv ("MUSTER_FAKE_TENSORFLOW");
  return told != NULL && strcmp (told, what) == 0;
}

/* TensorFlow's number for a request, which may be one that it had; weak, so that a call asks the
 * linker for it, as one from another library does. */
uint64_t random_number (void) __asm__("_ZN3tsl6random16ThreadLocalNew64Ev");

__attribute__ ((weak)) uint64_t
random_number (void)
{
  return 42;
}

const char *
TF_Version (void)
{
  return is_to ("draw numbers") && random_number () != random_number () ? "2.99.0-fake, new numbers"
                                                                        : "2.99.0-fake";
}

TF_Status *
TF_NewStatus (void)
{
  return calloc (1, sizeof (TF_Status));
}

int
TF_GetCode (const TF_Status *status)
{
  return status->code;
}

const char *
TF_Message (const TF_Status *status)
{
  return status->message;
}

static int
listen_any_v6 (unsigned port)
{
  struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons ((uint16_t)port)};
  int fd = socket (AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  return bind (fd, (struct sockaddr *)&any, sizeof any) == 0 && listen (fd, 8) == 0 ? fd : -1;
}

static int
listen_any (unsigned port)
{
  struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons ((uint16_t)port)};
  int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  return bind (fd, (struct sockaddr *)&any, sizeof any) == 0 && listen (fd, 8) == 0 ? fd : -1;
}

/* As a library would that doesn't ask libc. */
static int
listen_behind_libc (void)
{
  struct sockaddr_in any = {.sin_family = AF_INET};
  int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  return syscall (SYS_bind, fd, &any, sizeof any) == 0 && listen (fd, 8) == 0 ? fd : -1;
}

static unsigned
port_in (const char *definition, size_t size)
{
  static const char before[] = "localhost:";
  const char *end = definition + size;
  const char *found = memmem (definition, size, before, sizeof before - 1);
  unsigned port = 0;
  for (const char *at = found != NULL ? found + sizeof before - 1 : end;
       at < end && isdigit ((unsigned char)*at); at++)
    port = port * 10 + (unsigned)(*at - '0');
  return port;
}

static void
note_pid (void)
{
  const char *path = getenv ("MUSTER_FAKE_TENSORFLOW_PIDS");
  FILE *file = path != NULL ? fopen (path, "a") : NULL;
  if (file == NULL)
    return;
  fprintf (file, "%d\n", (int)getpid ());
  fclose (file);
}

/* Fails with what became of opening two files: "inside: 0, outside: 13". */
static bool
try_files (TF_Status *status)
{
  static char said[64];
  const int inside = open (getenv ("MUSTER_FAKE_TENSORFLOW_INSIDE"), O_RDWR | O_CREAT, 0600);
  const int of_inside = inside >= 0 ? 0 : errno;
  const int outside = open (getenv ("MUSTER_FAKE_TENSORFLOW_OUTSIDE"), O_RDONLY);
  snprintf (said, sizeof said, "inside: %d, outside: %d", of_inside, outside >= 0 ? 0 : errno);
  *status = (TF_Status){3, said};
  return true;
}

TF_Server *
TF_NewServer (const void *definition, size_t size, TF_Status *status)
{
  unsigned port = port_in (definition, size);
  TF_Server *server = calloc (1, sizeof *server);
  note_pid ();
  if (is_to ("open files") && try_files (status))
    return server;
  if (is_to ("abort"))
    abort ();
  while (is_to ("hang"))
    pause ();
  if (is_to ("elsewhere"))
    port = 0;
  server->listener = is_to ("listen on IPv6") ? listen_any_v6 (port) : listen_any (port);
  if (is_to ("go behind libc"))
    listen_behind_libc ();
  if (is_to ("fail") || server->listener < 0)
    *status = (TF_Status){8, "no more\nof that"};
  return server;
}

static int
accept_one (int listener)
{
  return is_to ("greet by accept4") ? accept4 (listener, NULL, NULL, SOCK_CLOEXEC)
                                    : accept (listener, NULL, NULL);
}

/* Accepts nothing until the gate's file exists, then adds to it what each connection sends. */
static void
serve_late (int listener)
{
  const char *gate = getenv ("MUSTER_FAKE_TENSORFLOW_GATE");
  char text[8];
  while (access (gate, F_OK) != 0)
    usleep (10000);
  for (int fd; (fd = accept (listener, NULL, NULL)) >= 0; close (fd)) {
    const ssize_t n = read (fd, text, sizeof text);
    FILE *file = fopen (gate, "a");
    fwrite (text, 1, n > 0 ? (size_t)n : 0, file);
    fclose (file);
  }
}

static void *
serve (void *data)
{
  TF_Server *server = data;
  if (is_to ("be late"))
    serve_late (server->listener);
  for (int fd; (fd = accept_one (server->listener)) >= 0; close (fd))
    if (is_to ("greet") || is_to ("greet by accept4"))
      (void)!write (fd, "hello", 5);
  return NULL;
}

void
TF_ServerStart (TF_Server *server, TF_Status *status)
{
  pthread_t thread;
  if (is_to ("close its socket"))
    close (3);
  if (pthread_create (&thread, NULL, serve, server) != 0)
    status->code = 13;
}
