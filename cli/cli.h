// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "master/master.h"
#include "session/session_manager.h"
#include "train/scaffold.h"

#include <json-glib/json-glib.h>
#include <stdio.h>

G_BEGIN_DECLS

/* What the commands share: exit codes, the common options, how an error and a result are printed.
 * Results go to stdout, everything else to stderr; with --json each result is one line of JSON. */

typedef enum {
  MUSTER_EXIT_DONE = 0,
  MUSTER_EXIT_NOT_READY = 1, /* not ready before the timeout */
  MUSTER_EXIT_NO_ANSWER = 2, /* no answer from the master */
  MUSTER_EXIT_BAD_INPUT = 3, /* bad usage or bad input */
  MUSTER_EXIT_FAILED = 4,    /* the run failed */
  MUSTER_EXIT_OVER = 5,      /* the job is already over */
} MusterExit;

/* Options that most commands have; zeros to begin with. */
typedef struct {
  char *meta_graph;  /* (owned) --meta-graph=FILE */
  char *target;      /* (owned) --master=TARGET */
  char *timeout;     /* (owned) --timeout=SECONDS */
  gboolean json;     /* --json */
  gint64 timeout_us; /* from timeout */
} MusterCliOptions;

void muster_cli_options_clear (MusterCliOptions *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterCliOptions, muster_cli_options_clear)

/* Which of the common options a command has. */
typedef enum {
  MUSTER_CLI_META_GRAPH = 1 << 0,
  MUSTER_CLI_MASTER = 1 << 1,
  MUSTER_CLI_TIMEOUT = 1 << 2,
  MUSTER_CLI_JSON = 1 << 3,
} MusterCliWants;

/* Parses a command's line: its own entries (NULL-terminated) and the common ones that it wants;
 * those wanted, but for the timeout and
 * --json, must be given. usage is what stands behind the command's name ("DIR"), summary a
 * paragraph for --help, which prints and exits. *rest (nullable out, transfer full) gets the words
 * that are no options; a command that takes none refuses them. FALSE with a message that names the
 * option. */
gboolean muster_cli_parse (int argc, char **argv, const char *usage, const char *summary,
                           const GOptionEntry *entries, MusterCliWants wants,
                           MusterCliOptions *options, char ***rest, GError **error);

/* "30", "30s", "10m", "2h", "500ms" to microseconds; "forever" to MUSTER_WAIT_FOREVER. */
gboolean muster_cli_duration (const char *text, gint64 *duration_us, GError **error);

/* Prints "muster: MESSAGE" and says with which code to exit. */
MusterExit muster_cli_fail (const GError *error);

/* As muster_cli_fail () for a verb that filled a report, with a second line that says what to try.
 * Where no session was ever made, it is the master that didn't answer in time, not the model that
 * wasn't ready. */
MusterExit muster_cli_fail_verb (const GError *error, const MusterSessionReport *report,
                                 const MusterCliOptions *options);

/* Prints one line of JSON to stdout; takes the builder's root. */
void muster_cli_print_json (JsonBuilder *builder);

/* TRUE if a person reads the stream on a terminal; colour is for those, unless NO_COLOR is set. */
gboolean muster_cli_is_terminal (FILE *stream);

/* A manager for a scaffold's ops; recovery_wait_us 0 is the default. */
MusterSessionManager *muster_cli_manager (MusterScaffold *scaffold, gint64 recovery_wait_us,
                                          GError **error);

/* "connect 3 ms, init 41 ms" */
char *muster_cli_phases (const MusterSessionReport *report);

/* Adds what a report says to the JSON object being built. */
void muster_cli_report_json (JsonBuilder *builder, const MusterSessionReport *report);

/* The commands: each gets its own arguments, argv[0] being its name, and returns an exit code. */
int muster_cli_serve (int argc, char **argv);
int muster_cli_prepare (int argc, char **argv);
int muster_cli_wait (int argc, char **argv);
int muster_cli_run (int argc, char **argv);
int muster_cli_save (int argc, char **argv);
int muster_cli_checkpoint (int argc, char **argv);

G_END_DECLS
