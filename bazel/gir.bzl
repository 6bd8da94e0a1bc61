# SPDX-License-Identifier: Apache-2.0
"""gir: NAMESPACE-VERSION.gir and .typelib, what other languages know of a library, by g-ir-scanner.

Each warning is an error: what can't be bound says (skip).
"""

_SCAN = """
set -e
export GI_SCANNER_DISABLE_CACHE=1 HOME=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
libraries=()
for file in {libraries}; do
  name=$(basename "$file")
  ln -s "$PWD/$file" "$work/${{name%%.so.*}}.so"
  ln -s "$PWD/$file" "$work/${{name%%.so.*}}.so.{nsversion}"
done
export LD_LIBRARY_PATH=$work
/usr/bin/g-ir-scanner --quiet --warn-all --warn-error --no-libtool \
  --namespace={namespace} --nsversion={nsversion} --identifier-prefix={identifiers} --symbol-prefix={symbols} \
  --c-include={c_include} --include=Gio-2.0 {included} --pkg=gio-2.0 --pkg-export={lib} \
  -I. --library={lib} --library-path="$work" --output={gir} {sources}
/usr/bin/g-ir-compiler {folders} --shared-library=lib{lib}.so.{nsversion} {gir} --output={typelib}
"""

def _impl(ctx):
    stem = "%s-%s" % (ctx.attr.namespace, ctx.attr.nsversion)
    gir = ctx.actions.declare_file(stem + ".gir")
    typelib = ctx.actions.declare_file(stem + ".typelib")
    others = [file for file in ctx.files.includes if file.path.endswith(".gir")]
    ctx.actions.run_shell(
        command = _SCAN.format(
            c_include = ctx.attr.c_include,
            folders = " ".join(["--includedir=" + file.dirname for file in others]),
            gir = gir.path,
            identifiers = ctx.attr.identifier_prefix,
            included = " ".join(["--include-uninstalled=" + file.path for file in others]),
            lib = ctx.attr.lib,
            libraries = " ".join([file.path for file in ctx.files.libraries]),
            namespace = ctx.attr.namespace,
            nsversion = ctx.attr.nsversion,
            sources = " ".join([file.path for file in ctx.files.srcs]),
            symbols = ctx.attr.symbol_prefix,
            typelib = typelib.path,
        ),
        inputs = ctx.files.srcs + ctx.files.headers + ctx.files.libraries + others,
        outputs = [gir, typelib],
        mnemonic = "GirScan",
        progress_message = "Scanning for %s.gir" % stem,
        use_default_shell_env = True,
    )
    files = [gir, typelib]
    return [DefaultInfo(files = depset(files), runfiles = ctx.runfiles(files))]

gir = rule(
    implementation = _impl,
    attrs = {
        "c_include": attr.string(mandatory = True),
        # what srcs include
        "headers": attr.label_list(allow_files = True),
        "identifier_prefix": attr.string(mandatory = True),
        # other gir targets
        "includes": attr.label_list(),
        "lib": attr.string(mandatory = True),
        # its own, and what that one needs of ours
        "libraries": attr.label_list(allow_files = True, mandatory = True),
        "namespace": attr.string(mandatory = True),
        "nsversion": attr.string(mandatory = True),
        "srcs": attr.label_list(allow_files = [".h"], mandatory = True),
        "symbol_prefix": attr.string(mandatory = True),
    },
)
