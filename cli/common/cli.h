// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "cli/common/usage_error.h"
#include "cli/output/sanitise.h"
#include "master/master.h"
#include "rpc/credentials.h"
#include "session/cluster/cluster_spec.h"
#include "session/manager.h"
#include "train/monitored/scaffold.h"

#include <stdio.h>

G_BEGIN_DECLS

/* What the commands share: exit codes, the common options, how an error and a result are printed.
 * Results go to stdout, everything else to stderr; with --json each result is one line of JSON. */

typedef enum {
  MUSTER_EXIT_DONE = 0,
  MUSTER_EXIT_NOT_READY = 1, /* not ready before the timeout */
  MUSTER_EXIT_NO = 1,        /* the answer is no: checkpoints differ, or one is damaged */
  MUSTER_EXIT_NO_ANSWER = 2, /* no answer from the master */
  MUSTER_EXIT_BAD_INPUT = 3, /* bad usage or bad input */
  MUSTER_EXIT_FAILED = 4,    /* it failed; another chief holds the model */
  MUSTER_EXIT_OVER = 5,      /* the job is already over */
  MUSTER_EXIT_PREEMPTED = 6, /* told to go before the end; can be resumed */
} MusterExit;

/* Options that most commands have; zeros to begin with. */
typedef struct {
  char *meta_graph;  /* (owned) --meta-graph=FILE */
  char *target;      /* (owned) --master=TARGET */
  char *timeout;     /* (owned) --timeout=SECONDS */
  gboolean json;     /* --json */
  char *model;       /* (owned) --model=NAME, or the meta graph's file name without .meta */
  char *task;        /* (owned) (nullable) --task=worker:3 */
  char *cluster;     /* (owned) (nullable) --cluster=ps:0=HOST:PORT,… */
  char *trace;       /* (owned) (nullable) --trace=FILE */
  char *tls_ca;      /* (owned) (nullable) --tls-ca=FILE, … */
  char *tls_cert;    /* (owned) (nullable) */
  char *tls_key;     /* (owned) (nullable) */
  char *token_file;  /* (owned) (nullable) */
  gint64 timeout_us; /* from timeout */
  char **addresses;  /* (owned) (nullable) from cluster, or TF_CONFIG */
  /* Of TF_CONFIG, for commands that open sessions; --master, --task and --cluster win. */
  MusterClusterSpec *spec;   /* (owned) (nullable) */
  gboolean target_from_spec; /* it says where sessions live */
  char *chief;               /* (owned) (nullable) "chief:0=HOST:PORT", with a master of its own */
  GBytes *config;            /* (owned) (nullable) a ConfigProto for each session */
} MusterCliOptions;

void muster_cli_options_clear (MusterCliOptions *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterCliOptions, muster_cli_options_clear)

/* Which of the common options a command has. */
typedef enum {
  MUSTER_CLI_META_GRAPH = 1 << 0,
  MUSTER_CLI_MASTER = 1 << 1,
  MUSTER_CLI_TIMEOUT = 1 << 2,
  MUSTER_CLI_JSON = 1 << 3,
  MUSTER_CLI_MODEL = 1 << 4,
  MUSTER_CLI_TASK = 1 << 5,
  MUSTER_CLI_CLUSTER = 1 << 6,
  MUSTER_CLI_TRACE = 1 << 7,
  MUSTER_CLI_SECURITY = 1 << 8, /* --tls-ca, --tls-cert, --tls-key, --token-file */
  MUSTER_CLI_SHORT = 1 << 9,    /* the timeout is 10 s unless given; else forever */
  MUSTER_CLI_SHARED = 1 << 10,  /* a master of this process's own makes no sense */
  /* of those, what all that open a session have … */
  MUSTER_CLI_SESSION = MUSTER_CLI_META_GRAPH | MUSTER_CLI_MASTER | MUSTER_CLI_TIMEOUT |
                       MUSTER_CLI_JSON | MUSTER_CLI_SECURITY,
  /* … and what the manager's verbs have besides */
  MUSTER_CLI_OPERATION = MUSTER_CLI_SESSION | MUSTER_CLI_MODEL | MUSTER_CLI_TASK |
                         MUSTER_CLI_CLUSTER | MUSTER_CLI_TRACE,
} MusterCliWants;

/* Parses a command's line: its own entries (NULL-terminated) and the common ones that it wants; of
 * those the meta graph and the master must be given. usage is what stands behind the command's name
 * ("DIR"), summary a paragraph for --help, which prints and exits. *rest (nullable out, transfer
 * full) gets the words that are no options; a command that takes none refuses them. FALSE with a
 * message that names the option. */
gboolean muster_cli_parse (int argc, char **argv, const char *usage, const char *summary,
                           const GOptionEntry *entries, MusterCliWants wants,
                           MusterCliOptions *options, char ***rest, GError **error);

/* An UNAVAILABLE of the master's: looks at its port, and says so where TLS is spoken on one side
 * only.
 */
void muster_cli_explain_no_answer (const MusterCliOptions *options, gint64 deadline_us,
                                   GError **error);

/* A session for a graph, as options say. */
MusterSession *muster_cli_create_session (MusterMaster *master, MusterGraph *graph,
                                          const MusterCliOptions *options, gint64 deadline_us,
                                          GError **error);

/* INVALID_ARGUMENT for a directory or checkpoint (nullable) that can't be one, as "s3://b/run". */
gboolean muster_cli_check_path (const char *option, const char *path, GError **error);

/* "30", "30s", "10m", "2h", "500ms" to microseconds; "forever" to MUSTER_WAIT_FOREVER. */
gboolean muster_cli_duration (const char *text, gint64 *duration_us, GError **error);

/* Prints "muster: MESSAGE" and says with which code to exit. */
MusterExit muster_cli_fail (const GError *error);
/* The code alone. */
MusterExit muster_cli_exit_of (const GError *error);

/* TRUE if a person reads the stream on a terminal; colour is for those, unless NO_COLOR is set. */
gboolean muster_cli_is_terminal (FILE *stream);

/* What the files say; NULL without an error where none is given and TLS isn't asked for. (transfer
 * full) */
MusterRpcCredentials *muster_cli_read_credentials (const MusterRpcSecurity *files, GError **error);
/* How the target that options name is secured; NULL without an error: not at all. (transfer full)
 */
MusterRpcCredentials *muster_cli_credentials (const MusterCliOptions *options, GError **error);

/* A master, secured as files say, and by TLS if the target begins with grpcs://. */
MusterMaster *muster_cli_master_at (const char *target, const MusterRpcSecurity *files,
                                    GError **error);
/* The master that the options name, secured as they say. */
MusterMaster *muster_cli_master (const MusterCliOptions *options, GError **error);

/* A manager for a scaffold's ops, and the model and task that options name; recovery_wait_us 0 is
 * the default. */
MusterSessionManager *muster_cli_manager (MusterScaffold *scaffold, const MusterCliOptions *options,
                                          gint64 recovery_wait_us, GError **error);

G_END_DECLS
