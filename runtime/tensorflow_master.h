// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/master.h"

G_BEGIN_DECLS

/* "tensorflow": TensorFlow's own runtime, all of its operations, as a child process that this one
 * starts and talks to. muster isn't linked to it: its library is found at run time, inside
 * TensorFlow's Python package, in TensorFlow's own tarball, or where a path says. The child listens
 * on 127.0.0.1 alone and ends with this process, whatever happens. Dies it, it is started again
 * where it was: then its variables are gone, calls fail with UNAVAILABLE and then, for the old
 * sessions, with ABORTED; those who make another session, as a manager does, go on. */

/**
 * muster_tensorflow_master_new:
 * @path: (nullable): the library, or a virtual environment or folder that has it; NULL: it is
 * looked for, in the virtual environment, among python3's packages, in /usr/local/lib
 *
 * Starts TensorFlow's runtime and comes back when it serves, in a second or some, at most two
 * minutes. The child lives as long as the master, which its sessions don't keep. It is a remote
 * master: its target is "grpc://127.0.0.1:PORT". NOT_FOUND says how to get TensorFlow,
 * INVALID_ARGUMENT why what is there won't do.
 *
 * Returns: (transfer full): a master
 */
MusterMaster *muster_tensorflow_master_new (const char *path, GError **error);

/**
 * muster_tensorflow_master_describe:
 *
 * "TensorFlow 2.21.0 from '/…/libtensorflow_cc.so.2', as process 1234".
 *
 * Returns: (transfer full) (nullable): NULL for a master of another kind
 */
char *muster_tensorflow_master_describe (MusterMaster *self);

/**
 * muster_tensorflow_master_process:
 *
 * Returns: its present process, 0 while it is started again or for a master of another kind
 */
int muster_tensorflow_master_process (MusterMaster *self);

/**
 * muster_tensorflow_master_offer:
 *
 * Makes "tensorflow" and "tensorflow:PATH" known to muster_master_new_for_target (): the same such
 * target is one and the same master, which lives as long as this process. (A path of digits alone
 * is a port: "tensorflow:2222" is the host of that name.)
 */
void muster_tensorflow_master_offer (void);

G_END_DECLS
