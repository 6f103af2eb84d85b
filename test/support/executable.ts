/**
 * The executable under test, built once: by whoever comes first when it is missing or older than a source, under a
 * kernel lock, so that test runs side by side do not build into each other.
 */
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { lockDirectory } from '../../src/lib/lock.ts'
import { eventually } from './eventually.ts'

export const repository = resolve(import.meta.dir, '../..')
const path = resolve(repository, 'dist/gatehouse')
const sources = new Bun.Glob('{src,cli}/**/*')
const buildFiles = ['package.json', 'bun.lock'].map((name) => resolve(repository, name))

let ready: Promise<string> | null = null

/** Gives the path of an up-to-date executable. */
export const executable = (): Promise<string> => {
  ready ??= prepare()
  return ready
}

async function prepare(): Promise<string> {
  const lock = await eventually(
    () => {
      const held = lockDirectory(resolve(repository, 'node_modules/.cache/gatehouse-build'))
      if (held === null) throw new Error('Another test run has been building for five minutes')
      return held
    },
    { withinMs: 300_000, everyMs: 200 },
  )
  try {
    if (!isCurrent()) await build()
    return path
  } finally {
    lock.release()
  }
}

function isCurrent(): boolean {
  const built = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0
  const files = [...sources.scanSync({ cwd: repository, absolute: true }), ...buildFiles]
  return files.every((file) => file.endsWith('.test.ts') || statSync(file).mtimeMs < built)
}

async function build(): Promise<void> {
  const build = Bun.spawn([process.execPath, 'cli/build.ts'], { cwd: repository, stdout: 'pipe', stderr: 'pipe' })
  const [code, ...texts] = await Promise.all([
    build.exited,
    new Response(build.stdout).text(),
    new Response(build.stderr).text(),
  ])
  if (code !== 0) throw new Error(`cli/build.ts failed with ${code}:\n${texts.join('')}`)
}
