/**
 * Makes the executable: `bun cli/build.ts [--target linux-x64] [--outfile dist/gatehouse]`. Targets for macOS and Windows
 * are for developers' machines; what differs there is in `src/lib/host/platform.ts`.
 *
 * What is not plain about it: libSQL looks its native addon up by package name at run time, which finds nothing in a
 * compiled executable (oven-sh/bun#18909). So (1) the addon goes in as a file, which `src/store/open.ts` places in the
 * data directory and opens, and (2) libSQL's two loaders are rewritten to take what was opened there. A rewrite that no
 * longer fits libSQL's text stops the build.
 *
 * The console's browser app is bundled first (`src/console/bundle.ts`) and goes in as text. So do the handbook's pages.
 *
 * Bytecode goes in beside the text, so that no start compiles what the build could: a command starts in a third of the
 * time. It is split where the source imports later on, so that a process reads only the parts it runs. Identifiers are
 * kept, so that stacks stay readable. An addon for another platform than this one is fetched through `bun install`
 * into a temp directory, at the version of the lock file.
 */
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import type { BunPlugin } from 'bun'
import { bundleConsole, type ConsoleAsset } from '../src/console/bundle.ts'
import { type HandbookPage, readPages } from '../src/handbook/read-pages.ts'
import { headerBlockOption } from '../src/lib/http/listen.ts'

interface Target {
  bun: Bun.Build.CompileTarget
  addon: string
}

const targets: Readonly<Record<string, Target>> = {
  'linux-x64': { bun: 'bun-linux-x64', addon: '@libsql/linux-x64-gnu' },
  'linux-arm64': { bun: 'bun-linux-arm64', addon: '@libsql/linux-arm64-gnu' },
  'linux-x64-musl': { bun: 'bun-linux-x64-musl', addon: '@libsql/linux-x64-musl' },
  'linux-arm64-musl': { bun: 'bun-linux-arm64-musl', addon: '@libsql/linux-arm64-musl' },
  // For developers' machines: see src/lib/host/platform.ts.
  'darwin-arm64': { bun: 'bun-darwin-arm64', addon: '@libsql/darwin-arm64' },
  'darwin-x64': { bun: 'bun-darwin-x64', addon: '@libsql/darwin-x64' },
  'windows-x64': { bun: 'bun-windows-x64', addon: '@libsql/win32-x64-msvc' },
}

const root = resolve(import.meta.dir, '..')

class BuildError extends Error {}

/** Replaces text that must be there, so that a new version of a package cannot silently undo a rewrite. */
function rewrite(file: string, text: string, replacements: readonly (readonly [from: string, to: string])[]): string {
  let result = text
  for (const [from, to] of replacements) {
    if (!result.includes(from)) throw new BuildError(`${file} no longer holds "${from}": look at cli/build.ts again`)
    result = result.replace(from, to)
  }
  return result
}

const libsqlLoader: readonly (readonly [string, string])[] = [
  ['= requireNative();', "= globalThis[Symbol.for('gatehouse.libsql')];"],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: this is libSQL's own text
  ['return require(`@libsql/${target}`);', ''],
]

/** Carries the addon as a file and makes libSQL take it from where `src/store/open.ts` opened it. */
async function embedAddon(addonFile: string): Promise<BunPlugin> {
  const bytes = await Bun.file(addonFile).bytes()
  const name = `libsql-${Bun.hash(bytes).toString(36)}.node`
  return {
    name: 'embed the libSQL addon',
    setup(build) {
      build.onLoad({ filter: /\/src\/store\/addon\.ts$/ }, () => ({
        loader: 'ts',
        contents: `import path from 'gatehouse:libsql-addon'\nexport const embeddedAddon = { path, name: '${name}' }\n`,
      }))
      build.onResolve({ filter: /^gatehouse:libsql-addon$/ }, () => ({ path: 'libsql.node', namespace: 'gatehouse' }))
      // As bytes of the loader `file`: given as a `.node` path, Bun would unpack it into the temp directory by itself.
      build.onLoad({ filter: /.*/, namespace: 'gatehouse' }, () => ({ loader: 'file', contents: bytes }))
      build.onLoad({ filter: /\/node_modules\/libsql\/(index|promise)\.js$/ }, async ({ path }) => ({
        loader: 'js',
        contents: rewrite(path, await Bun.file(path).text(), libsqlLoader),
      }))
    },
  }
}

/**
 * prom-client loads what pushes metrics to a gateway of Prometheus, and with it Node's whole HTTP client: 4 ms of every
 * start, and nothing here pushes.
 */
const leaveOutPushgateway: BunPlugin = {
  name: 'leave out the Pushgateway',
  setup(build) {
    build.onLoad({ filter: /\/node_modules\/prom-client\/index\.js$/ }, async ({ path }) => ({
      loader: 'js',
      contents: rewrite(path, await Bun.file(path).text(), [
        ["exports.Pushgateway = require('./lib/pushgateway');", ''],
      ]),
    }))
  },
}

/** Carries the console's files, made once here, in place of what makes them from source. */
function embedConsole(assets: readonly ConsoleAsset[]): BunPlugin {
  return {
    name: 'embed the console',
    setup(build) {
      build.onLoad({ filter: /\/src\/console\/assets\.ts$/ }, () => ({
        loader: 'ts',
        contents: `const assets = ${JSON.stringify(assets)}\nexport const consoleAssets = async () => assets\n`,
      }))
    },
  }
}

/** Carries the handbook's pages, read once here, in place of what reads them from files. */
function embedHandbook(pages: readonly HandbookPage[]): BunPlugin {
  return {
    name: 'embed the handbook',
    setup(build) {
      build.onLoad({ filter: /\/src\/handbook\/pages\.ts$/ }, () => ({
        loader: 'ts',
        contents: `const pages = ${JSON.stringify(pages)}\nexport const handbookPages = async () => pages\n`,
      }))
    },
  }
}

/** The version of libSQL that the lock file pins; its addons have the same. */
async function libsqlVersion(): Promise<string> {
  const { version }: { version?: unknown } = await Bun.file(join(root, 'node_modules/libsql/package.json')).json()
  if (typeof version !== 'string') throw new BuildError('node_modules/libsql has no version: run bun install')
  return version
}

/** The addon's file, and what to clean up afterwards. Fetches it where it is not installed. */
async function findAddon(packageName: string): Promise<{ file: string; discard(): void }> {
  const installed = join(root, 'node_modules', packageName, 'index.node')
  if (existsSync(installed)) return { file: installed, discard: () => undefined }
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-addon-'))
  const discard = () => rmSync(directory, { recursive: true, force: true })
  const wanted = `${packageName}@${await libsqlVersion()}`
  await Bun.write(join(directory, 'package.json'), '{"private":true}')
  const fetching = Bun.spawn([process.execPath, 'add', '--exact', '--os', '*', '--cpu', '*', wanted], {
    cwd: directory,
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'pipe',
  })
  const file = join(directory, 'node_modules', packageName, 'index.node')
  if ((await fetching.exited) !== 0 || !existsSync(file)) {
    const reason = (await new Response(fetching.stderr).text()).trim()
    discard()
    throw new BuildError(`${wanted} could not be fetched: run bun install --os '*' --cpu '*' and retry\n${reason}`)
  }
  return { file, discard }
}

async function build(targetName: string, outfile: string): Promise<void> {
  const target = targets[targetName]
  if (!target) throw new BuildError(`Unknown target "${targetName}": use one of ${Object.keys(targets).join(', ')}`)
  const addon = await findAddon(target.addon)
  try {
    const { success, logs } = await Bun.build({
      entrypoints: [join(root, 'cli/main.ts'), join(root, 'src/usage/pricing/tokenizer-thread.ts')],
      target: 'bun',
      minify: { whitespace: true, syntax: true },
      bytecode: true,
      splitting: true,
      format: 'esm',
      compile: {
        target: target.bun,
        outfile,
        execArgv: [headerBlockOption],
        autoloadDotenv: false,
        autoloadBunfig: false,
      },
      plugins: [
        await embedAddon(addon.file),
        leaveOutPushgateway,
        embedConsole(await bundleConsole()),
        embedHandbook(await readPages()),
      ],
    })
    if (!success) throw new BuildError(logs.join('\n'))
  } finally {
    addon.discard()
  }
}

if (import.meta.main) {
  const started = performance.now()
  try {
    const { values } = parseArgs({
      options: { target: { type: 'string', default: 'linux-x64' }, outfile: { type: 'string' } },
    })
    const ending = values.target.startsWith('windows') ? '.exe' : ''
    const suffix = values.target === 'linux-x64' ? '' : `-${values.target}`
    const written = resolve(values.outfile ?? join(root, `dist/gatehouse${suffix}`))
    const outfile = ending !== '' && !written.endsWith(ending) ? `${written}${ending}` : written
    await build(values.target, outfile)
    const megabytes = (Bun.file(outfile).size / 1e6).toFixed(1)
    // `console.error` makes a terminal show it in red, as if the build had failed.
    process.stderr.write(`${outfile}: ${megabytes} MB in ${(performance.now() - started).toFixed(0)} ms\n`)
  } catch (error) {
    console.error(`error: ${error instanceof Error ? error.message : String(error)}`)
    if (!(error instanceof BuildError) && error instanceof AggregateError) console.error(error.errors.join('\n'))
    process.exitCode = 1
  }
}
