// SPDX-License-Identifier: Apache-2.0
/* How a command ends. */
#include "cli/common/cli.h"
#include "cli/output/log.h"

#include <poll.h>
#include <unistd.h>

/* TRUE if the disk or the system has failed, rather than the path that was given. */
static gboolean
is_failing_disk (const GError *error)
{
  static const GFileError of_file[] = {G_FILE_ERROR_IO,    G_FILE_ERROR_NOSPC, G_FILE_ERROR_ROFS,
                                       G_FILE_ERROR_MFILE, G_FILE_ERROR_NFILE, G_FILE_ERROR_NOMEM,
                                       G_FILE_ERROR_NXIO,  G_FILE_ERROR_FAILED};
  static const GIOErrorEnum of_io[] = {G_IO_ERROR_FAILED,    G_IO_ERROR_NO_SPACE,
                                       G_IO_ERROR_READ_ONLY, G_IO_ERROR_TOO_MANY_OPEN_FILES,
                                       G_IO_ERROR_TIMED_OUT, G_IO_ERROR_CANCELLED};
  for (gsize i = 0; i < G_N_ELEMENTS (of_file); i++)
    if (g_error_matches (error, G_FILE_ERROR, of_file[i]))
      return TRUE;
  for (gsize i = 0; i < G_N_ELEMENTS (of_io); i++)
    if (g_error_matches (error, G_IO_ERROR, of_io[i]))
      return TRUE;
  return FALSE;
}

MusterExit
muster_cli_exit_of (const GError *error)
{
  if (is_failing_disk (error))
    return MUSTER_EXIT_FAILED;
  if (g_error_matches (error, G_IO_ERROR, G_IO_ERROR_HOST_UNREACHABLE))
    return MUSTER_EXIT_NO_ANSWER;
  if (error->domain == G_OPTION_ERROR || error->domain == G_FILE_ERROR ||
      error->domain == G_KEY_FILE_ERROR)
    return MUSTER_EXIT_BAD_INPUT;
  if (error->domain == G_IO_ERROR)
    return MUSTER_EXIT_BAD_INPUT;
  if (error->domain != MUSTER_ERROR)
    return MUSTER_EXIT_FAILED;
  switch (error->code) {
  case MUSTER_ERROR_UNAVAILABLE:
    return MUSTER_EXIT_NO_ANSWER;
  case MUSTER_ERROR_DEADLINE_EXCEEDED:
    return MUSTER_EXIT_NOT_READY;
  case MUSTER_ERROR_INVALID_ARGUMENT:
  case MUSTER_ERROR_NOT_FOUND:
  case MUSTER_ERROR_ALREADY_EXISTS:
  case MUSTER_ERROR_DATA_LOSS:
  case MUSTER_ERROR_UNIMPLEMENTED:
  case MUSTER_ERROR_PERMISSION_DENIED:
  case MUSTER_ERROR_UNAUTHENTICATED:
    return MUSTER_EXIT_BAD_INPUT;
  default:
    return MUSTER_EXIT_FAILED;
  }
}

/* TRUE for a pipe, a socket or a terminal whose other end was closed. */
static gboolean
is_unread (int fd)
{
  struct pollfd output = {.fd = fd};
  return poll (&output, 1, 0) > 0 && (output.revents & (POLLERR | POLLHUP)) != 0;
}

static gboolean is_only_told;

void
muster_cli_output_only_tells (void)
{
  is_only_told = TRUE;
}

/* What a command was asked for is its output, so one that could write none hasn't succeeded. */
static MusterExit
flush_output (MusterExit code)
{
  static gboolean is_reported;
  const int failure = muster_cli_flush (stdout);
  muster_cli_log_flush ();
  if (failure == 0 || is_reported || is_unread (STDOUT_FILENO))
    return code;
  is_reported = TRUE;
  muster_cli_say (stderr, "muster: couldn't write the output: %s\n", g_strerror (failure));
  return code == MUSTER_EXIT_DONE && !is_only_told ? MUSTER_EXIT_FAILED : code;
}

MusterExit
muster_cli_leave (MusterExit code)
{
  code = flush_output (code);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(MUSTER_LEAVES_TIDILY)
  return code;
#else
  fflush (NULL);
  _exit (code);
#endif
}

MusterExit
muster_cli_fail (const GError *error)
{
  muster_cli_say (stderr, "muster: %s\n", error->message);
  return muster_cli_exit_of (error);
}

gboolean
muster_cli_is_terminal (FILE *stream)
{
  return isatty (fileno (stream)) && g_strcmp0 (g_getenv ("TERM"), "dumb") != 0;
}
