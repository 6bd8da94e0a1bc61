// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/master.h"

G_BEGIN_DECLS

/* "tensorflow": TensorFlow's own runtime, all of its operations, as a child process that this one
 * starts and talks to. muster isn't linked to it: its library is found at run time, inside
 * TensorFlow's Python package, in TensorFlow's own tarball, or where a path says. The child listens
 * on 127.0.0.1 alone and ends with this process, whatever happens. When it dies it is started again
 * where it was; its variables are gone then, and its sessions fail with UNAVAILABLE or ABORTED.
 * Those who make another session, as a manager does, go on. */

#define MUSTER_TYPE_TENSORFLOW_MASTER (muster_tensorflow_master_get_type ())
G_DECLARE_FINAL_TYPE (MusterTensorflowMaster, muster_tensorflow_master, MUSTER, TENSORFLOW_MASTER,
                      GObject)

/**
 * muster_tensorflow_master_new:
 * @path: (nullable): the library, or a virtual environment or folder that has it; NULL: it is
 * looked for, in the virtual environment, among python3's packages, in /usr/local/lib
 *
 * Begins to start TensorFlow's runtime, which takes a second or some, at most two minutes; the
 * first call waits for that, until its own deadline or until it is cancelled. The child lives as
 * long as the master and its sessions. NOT_FOUND says how to get TensorFlow; that what is there
 * won't do, each call says (INVALID_ARGUMENT, or INTERNAL where it died).
 *
 * Returns: (transfer full): a master
 */
MusterMaster *muster_tensorflow_master_new (const char *path, GError **error);

/**
 * muster_tensorflow_master_describe:
 *
 * "TensorFlow 2.21.0 from '/…/libtensorflow_cc.so.2', as process 1234"; before it serves, without
 * version and process. It is logged as a message when it serves for the first time.
 *
 * Returns: (transfer full)
 */
char *muster_tensorflow_master_describe (MusterTensorflowMaster *self);

/**
 * muster_tensorflow_master_offer:
 *
 * Makes "tensorflow" and "tensorflow:PATH" known to muster_master_new_for_target (): the same such
 * target is one and the same master, which lives as long as this process unless its start fails. (A
 * path of digits alone is a port: "tensorflow:2222" is the host of that name.)
 */
void muster_tensorflow_master_offer (void);

G_END_DECLS
