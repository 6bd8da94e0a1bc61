// SPDX-License-Identifier: Apache-2.0
// muster in C++: prepares a model on the engine, trains three steps and saves. The model's data is
// beside it, as in the installed example:
//
//   build/train /usr/share/muster/examples/digits.meta run
#include <muster.h>

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>

namespace
{

// What is freed when its owner goes out of scope.
template <auto release> struct Release {
  template <typename T>
  void
  operator() (T *value) const
  {
    release (value);
  }
};
template <typename T> using Object = std::unique_ptr<T, Release<g_object_unref>>;
using Scaffold = std::unique_ptr<MusterScaffold, Release<muster_scaffold_unref>>;
using Tensor = std::unique_ptr<MusterTensor, Release<muster_tensor_unref>>;
using Text = std::unique_ptr<char, Release<g_free>>;

// The error of a call, as an exception: pass it as the call's last argument, then check it.
class Error
{
public:
  ~Error ()
  {
    g_clear_error (&error);
  }
  operator GError ** ()
  {
    return &error;
  }
  void
  check () const
  {
    if (error != nullptr)
      throw std::runtime_error (error->message);
  }

private:
  GError *error = nullptr;
};

Tensor
load (const std::string &meta_graph, const char *name)
{
  Error error;
  const auto slash = meta_graph.rfind ('/');
  const std::string directory = slash == std::string::npos ? "" : meta_graph.substr (0, slash + 1);
  Tensor tensor (muster_npy_load ((directory + name).c_str (), error));
  error.check ();
  return tensor;
}

void
train (MusterSession *session, MusterScaffold *scaffold, const char *meta_graph)
{
  Error error;
  const Tensor images = load (meta_graph, "images.npy"), labels = load (meta_graph, "labels.npy");
  const MusterFeed feeds[] = {{"x:0", images.get ()}, {"y:0", labels.get ()}};
  const char *targets[] = {muster_scaffold_train_op (scaffold)};
  MusterStep step{};
  step.feeds = feeds;
  step.n_feeds = 2;
  step.targets = targets;
  step.n_targets = 1;

  for (int i = 0; i < 3; i++) {
    muster_session_run (session, &step, nullptr, nullptr, nullptr, error);
    error.check ();
  }
}

void
work (const char *meta_graph, const char *directory)
{
  Error error;
  const Scaffold scaffold (muster_scaffold_load (meta_graph, error));
  error.check ();
  const Object<MusterSaver> saver (
      muster_saver_new (muster_scaffold_meta_graph (scaffold.get ()), nullptr, error));
  error.check ();

  MusterSessionManagerOptions options{};
  options.ready_op = muster_scaffold_ready_op (scaffold.get ());
  options.local_init_op = muster_scaffold_local_init_op (scaffold.get ());
  const Object<MusterSessionManager> manager (
      muster_session_manager_new (muster_scaffold_graph (scaffold.get ()), &options, error));
  error.check ();

  MusterPrepareOptions preparing{};
  preparing.init_op = muster_scaffold_init_op (scaffold.get ());
  preparing.saver = saver.get ();
  preparing.checkpoint_dir = directory;
  const Object<MusterMaster> master (muster_local_master_new ());
  const Object<MusterSession> session (muster_session_manager_prepare_session (
      manager.get (), master.get (), &preparing, nullptr, nullptr, error));
  error.check ();
  train (session.get (), scaffold.get (), meta_graph);
  const Text prefix (muster_saver_save (saver.get (), session.get (), directory, 3,
                                        MUSTER_WAIT_FOREVER, nullptr, error));
  error.check ();
  std::printf ("trained 3 steps, saved %s\n", prefix.get ());
}

} // namespace

int
main (int argc, char **argv)
{
  if (argc != 3) {
    std::fprintf (stderr, "usage: train MODEL.meta DIRECTORY\n");
    return 3;
  }
  try {
    work (argv[1], argv[2]);
  } catch (const std::exception &failure) {
    std::fprintf (stderr, "train: %s\n", failure.what ());
    return 4;
  }
  return 0;
}
