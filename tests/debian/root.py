# SPDX-License-Identifier: Apache-2.0
"""Debian systems in folders of their own, and Containerfiles whose steps are run in them."""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time

CODENAMES = {"12": "bookworm", "13": "trixie"}

# By pivot_root rather than chroot, after which no process may make namespaces, as sandboxes do.
ENTER = """
set -e
mount --bind "$0" "$0"
cd "$0"
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mkdir -p .old tmp
pivot_root . .old
umount -l /.old
rmdir /.old
# Not exec: who changes the user isn't ended with its parent any more, but this shell is, and with it the namespace.
setpriv --reuid="$1" --regid="$2" --clear-groups -- "${@:3}" || exit $?
"""
# With systemd as the first process, a network and control groups of its own.
BOOT = """
set -e
ip link set lo up
mount --bind "$0" "$0"
cd "$0"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs dev
mkdir -p dev/pts dev/shm .old
ln -s /proc/self/fd dev/fd
for device in null zero full random urandom tty; do
  touch dev/$device
  mount --bind /dev/$device dev/$device
done
pivot_root . .old
umount -l /.old
rmdir /.old
exec env container=other /lib/systemd/systemd --system --log-target=null --show-status=no
"""
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8",
               "DEBIAN_FRONTEND": "noninteractive"}


class Root:
    """What lies below a folder."""

    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)

    @classmethod
    def debian(cls, folder, suite, *packages):
        """The packages that Debian's own images have, and these; one that was made before is used again."""
        if not os.path.isdir(folder):
            subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", *("--include=" + name for name in packages), suite, folder + ".new"], check=True)
            for file in ("/etc/resolv.conf", "/etc/hosts"):
                shutil.copy(file, folder + ".new" + file)
            os.rename(folder + ".new", folder)
        return cls(folder)

    def at(self, path):
        return os.path.join(self.folder, path.lstrip("/"))

    def start(self, words, cwd="/", user="0:0", environment=None, **rest):
        """Starts a program. All that it has started ends with it."""
        inside = ["bash", "-c", "cd %s && exec \"$@\"" % shlex.quote(cwd), "bash", *words]
        return subprocess.Popen(["unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", "-c", ENTER, self.folder, *user.split(":"), *inside],
                                env={**ENVIRONMENT, **(environment or {})}, **rest)

    def run(self, words, **rest):
        process = self.start(words, **rest)
        if process.wait() != 0:
            raise AssertionError("exit %d: %s" % (process.returncode, shlex.join(words)))

    def shell(self, line, **rest):
        self.run(["sh", "-c", line], **rest)


class Machine:
    """A root that was booted."""

    def __init__(self, root):
        self.init = subprocess.Popen(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--uts", "--ipc", "--net", "--cgroup", "bash", "-c",
                                      BOOT, root.folder], stdin=subprocess.DEVNULL, env=ENVIRONMENT)
        # Until systemd can be asked.
        for _ in range(120):
            time.sleep(0.5)
            if self.ask("systemctl is-system-running").strip() in ("running", "degraded"):
                return
        raise AssertionError("systemd doesn't run")

    def inside(self, line):
        with open("/proc/%d/task/%d/children" % (self.init.pid, self.init.pid), encoding="ascii") as file:
            first = file.read().split()
        return ["nsenter", "-t", first[0] if first else "0", "-m", "-p", "-u", "-i", "-n", "-C", "sh", "-c", line]

    def ask(self, line):
        """What a command prints."""
        return subprocess.run(self.inside(line), env=ENVIRONMENT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout

    def start(self, line, **rest):
        return subprocess.Popen(self.inside(line), env=ENVIRONMENT, text=True, **rest)

    def shell(self, line):
        done = subprocess.run(self.inside(line), env=ENVIRONMENT)
        if done.returncode != 0:
            raise AssertionError("exit %d: %s" % (done.returncode, line))

    def off(self):
        self.init.kill()
        self.init.wait()


class Image:
    """What a Containerfile makes: a root, and what is run in it."""

    def __init__(self, root):
        self.root, self.workdir, self.user, self.entrypoint, self.cmd = root, "/", "0:0", [], []

    def start(self, *words, **rest):
        return self.root.start([*self.entrypoint, *(words or self.cmd)], cwd=self.workdir, user=self.user, **rest)


def instructions(path):
    with open(path, encoding="utf-8") as file:
        lines = "".join(line for line in file if not line.startswith("#")).replace("\\\n", " ").splitlines()
    return [line.split(" ", 1) for line in lines if line]


def build(path, context, folder, suites, **arguments):
    """Runs a Containerfile's steps; its roots are below FOLDER. SUITES: of which release an image is, by its name."""
    stages, image, values = {}, None, {}
    for at, (what, rest) in enumerate(instructions(path)):
        rest = re.sub(r"\$\{(\w+)\}", lambda found: values[found.group(1)], rest)
        words = rest.split()
        if what == "ARG":
            name, _, default = rest.partition("=")
            values[name] = arguments.get(name, default)
        elif what == "FROM":
            below = os.path.join(folder, "%s-%d" % (os.path.basename(path), at))
            image = Image(Root(below) if words[0] == "scratch" else Root.debian(below, suites[words[0]]))
            stages[words[2] if len(words) > 2 else at] = image
        elif what == "COPY":
            copy(stages[words[0].split("=")[1]].root.folder if words[0].startswith("--from=") else context, words[-2], image.root.at(words[-1]))
        elif what == "RUN":
            image.root.shell(rest, cwd=image.workdir)
        elif what == "WORKDIR":
            image.workdir = rest
        elif what == "USER":
            image.user = rest
        elif what in ("ENTRYPOINT", "CMD"):
            setattr(image, what.lower(), json.loads(rest))
        else:
            raise AssertionError("unknown instruction: %s %s" % (what, rest))
    return image, stages


def copy(top, source, to):
    """As COPY does: a folder's content, or a file into a folder."""
    path = os.path.normpath(os.path.join(top, source.lstrip("/")))
    if os.path.isdir(path):
        shutil.copytree(path, to, symlinks=True, dirs_exist_ok=True)
    else:
        shutil.copy(path, to)


# --- a test's beginning ---

def take_release():
    """The first argument, which goes: whose Debian it is. The test is skipped where none can be made."""
    release = sys.argv.pop(1)
    if os.getuid() != 0 or not shutil.which("mmdebstrap"):
        print("SKIPPED: needs root and mmdebstrap")
        sys.exit(0)
    return release
