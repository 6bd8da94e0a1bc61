// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/restore.h"
#include "tests/doubles/small_model.h"
#include "tests/gtest_shim.h"

G_BEGIN_DECLS

/* A saver and a session of the real engine, and checkpoints in the test's directory. */

/* "v" float [2], "w" int64 [], "u" float [2,3]: 40 bytes. */
extern const MusterSmallVariable three[3];

typedef struct {
  MusterMetaGraph *meta_graph;
  MusterSaver *saver;
  MusterMaster *master;
  MusterSession *session;
  MusterRestored restored; /* by the last restore, as is … */
  GError *error;           /* … how it failed */
} Fixture;

Fixture set_up (const MusterSmallVariable *variables, gsize n);
void tear_down (Fixture *f);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, tear_down)

/* (transfer full) */
char *path_of (const char *name);
/* A checkpoint of these variables, each byte the value; (transfer full) its prefix. */
char *write_as (const char *name, const MusterSmallVariable *variables, gsize n, int value);
/* Names checkpoints in the state file, the last one being the latest. */
void write_state (const char *first, ...) G_GNUC_NULL_TERMINATED;
void damage (const char *prefix);
gboolean exists (const char *name);

gboolean restore (Fixture *f, const char *prefix, MusterRestoreOptions options);
gboolean restore_latest (Fixture *f, MusterRestoreOptions options);

/* The first byte of a variable's value; -1 where it has none. */
int byte_of (Fixture *f, const char *variable);
gboolean initialise (Fixture *f);

G_END_DECLS
