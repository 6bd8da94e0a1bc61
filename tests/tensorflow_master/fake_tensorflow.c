// SPDX-License-Identifier: Apache-2.0
/* What muster-tensorflow uses of TensorFlow's library: a server that listens on every interface, as
 * TensorFlow's does, and accepts and drops. $MUSTER_FAKE_TENSORFLOW says how it misbehaves. */
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
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

const char *
TF_Version (void)
{
  return "2.99.0-fake";
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
  const char *found = memmem (definition, size, before, sizeof before - 1);
  return found != NULL ? (unsigned)atoi (found + sizeof before - 1) : 0;
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

TF_Server *
TF_NewServer (const void *definition, size_t size, TF_Status *status)
{
  unsigned port = port_in (definition, size);
  TF_Server *server = calloc (1, sizeof *server);
  note_pid ();
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

static void *
serve (void *data)
{
  TF_Server *server = data;
  for (int fd; (fd = accept (server->listener, NULL, NULL)) >= 0;)
    close (fd);
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
