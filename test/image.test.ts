/**
 * The container image without Docker: the steps of the Dockerfile's build stage are run as they stand there, and what
 * they make runs as the second stage says, in a root of its own that holds nothing but the C library: read-only but for
 * /data, as a user without rights. It needs root and namespaces of mounts, as a CI's container usually has.
 */
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import {
  chownSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import { version } from '../src/version.ts'
import { until } from './support/eventually.ts'
import { freePort } from './support/free-port.ts'

setDefaultTimeout(240_000)

const repository = join(import.meta.dir, '..')
const made = mkdtempSync(join(tmpdir(), 'gatehouse-image-'))
afterAll(() => rmSync(made, { recursive: true, force: true }))

interface Step {
  instruction: string
  text: string
}

/** The stages of the Dockerfile, each with its steps; lines that end with a backslash go on. */
const stages = readFileSync(join(repository, 'Dockerfile'), 'utf8')
  .replaceAll(/^#.*\n/gm, '')
  .replaceAll('\\\n', ' ')
  .split(/^(?=FROM )/m)
  .filter((stage) => stage.startsWith('FROM '))
  .map((stage) =>
    stage
      .trim()
      .split('\n')
      .map((line): Step => {
        const [instruction = '', ...words] = line.trim().split(/\s+/)
        return { instruction, text: words.join(' ') }
      }),
  )
const [buildStage = [], finalStage = []] = stages
const textsOf = (steps: readonly Step[], instruction: string): string[] =>
  steps.filter((step) => step.instruction === instruction).map(({ text }) => text)

/** Runs the steps of the build stage, with a directory of this test in place of /build. */
async function runBuildStage(directory: string): Promise<void> {
  mkdirSync(directory)
  for (const { instruction, text } of buildStage) {
    if (instruction === 'COPY') {
      const words = text.split(' ')
      const target = words.at(-1) ?? ''
      for (const source of words.slice(0, -1)) {
        const to = target.endsWith('/') ? join(directory, target, source) : join(directory, target)
        cpSync(join(repository, source), to, { recursive: true })
      }
    }
    if (instruction !== 'RUN') continue
    const shell = Bun.spawn(['sh', '-ec', text.replaceAll(/(?<=^|\s)\/build(?=\/|\s|$)/g, directory)], {
      cwd: directory,
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const said = await Promise.all([new Response(shell.stdout).text(), new Response(shell.stderr).text()])
    if ((await shell.exited) !== 0) throw new Error(`A step of the build stage failed: ${text}\n${said.join('')}`)
  }
}

/** A root with the executable and the libraries that it and its addon are linked to: all are of glibc and libgcc. */
function makeRoot(root: string, executable: string, addon: string): void {
  for (const folder of ['data', 'dev', 'proc', 'usr/local/bin']) mkdirSync(join(root, folder), { recursive: true })
  copyFileSync(executable, join(root, 'usr/local/bin/gatehouse'))
  const linked = Bun.spawnSync(['ldd', executable, addon]).stdout.toString()
  // The lines of `ldd` that name the files which were asked about end with a colon.
  const libraries = new Set([...linked.matchAll(/(\/\S+[^\s:])(?=\s)/g)].map(([path]) => path))
  for (const path of libraries) {
    mkdirSync(join(root, dirname(path)), { recursive: true })
    copyFileSync(path, join(root, path))
  }
}

const commandSchema = z.array(z.string())
const environment = Object.fromEntries(
  textsOf(finalStage, 'ENV').flatMap((text) => text.split(/\s+/).map((pair) => pair.split('=', 2))),
)

/** What `docker run --read-only` does, by the kernel's own means. */
function runImage(root: string, data: string, settings: Readonly<Record<string, string>>) {
  const [entrypoint = '[]'] = textsOf(finalStage, 'ENTRYPOINT')
  const [command = '[]'] = textsOf(finalStage, 'CMD')
  const words = [...commandSchema.parse(JSON.parse(entrypoint)), ...commandSchema.parse(JSON.parse(command))]
  const [user = ''] = textsOf(finalStage, 'USER')
  const script = [
    `mount --bind ${root} ${root}`,
    `mount -o remount,bind,ro ${root}`,
    `mount --bind ${data} ${root}/data`,
    `mount -t proc proc ${root}/proc`,
    `mount --bind /dev ${root}/dev`,
    `exec chroot --userspec=${user} ${root} ${words.join(' ')}`,
  ].join(' && ')
  return Bun.spawn(['unshare', '--mount', '--pid', '--fork', '--kill-child', 'sh', '-c', script], {
    env: { PATH: process.env.PATH ?? '', ...environment, ...settings },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
}

const mayIsolate =
  process.getuid?.() === 0 && Bun.spawnSync(['unshare', '--mount', '--pid', '--fork', 'true']).exitCode === 0

test.skipIf(!mayIsolate)('the steps of the Dockerfile make an image that starts on a read-only root', async () => {
  const build = join(made, 'build')
  await runBuildStage(build)
  const root = join(made, 'root')
  const [addon = ''] = new Bun.Glob('node_modules/@libsql/linux-*-gnu/index.node').scanSync({ cwd: build })
  makeRoot(root, join(build, 'out/gatehouse'), join(build, addon))
  const data = join(build, 'data')
  expect(statSync(data).mode & 0o777).toBe(0o700)
  // COPY --chown of the second stage.
  expect(textsOf(finalStage, 'COPY')).toContain('--from=build --chown=65532:65532 /build/data /data')
  chownSync(data, 65532, 65532)
  const [api, gateway] = [await freePort(), await freePort()]
  expect(environment).toMatchObject({ SERVICE_DATA: '/data', SERVICE_GATEWAY_LISTEN: '0.0.0.0:7080' })
  const image = runImage(root, data, {
    SERVICE_CONTROL_PLANE_LISTEN: `0.0.0.0:${api}`,
    SERVICE_GATEWAY_LISTEN: `0.0.0.0:${gateway}`,
  })
  const said = Promise.all([new Response(image.stdout).text(), new Response(image.stderr).text()])
  try {
    for (const port of [api, gateway]) {
      await until(
        `what listens on ${port} is ready`,
        async () => {
          const answer = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => null)
          return answer?.status === 200
        },
        { withinMs: 60_000 },
      )
    }
    const health = await (await fetch(`http://127.0.0.1:${api}/healthz`)).json()
    expect(health).toMatchObject({ version })
    const token = statSync(join(data, 'admin-token'))
    expect([token.mode & 0o777, token.uid]).toEqual([0o600, 65532])
    expect(existsSync(join(root, 'tmp'))).toBe(false)
  } finally {
    const [inner = ''] = Bun.spawnSync(['pgrep', '-P', String(image.pid)])
      .stdout.toString()
      .trim()
      .split('\n')
    process.kill(Number(inner), 'SIGTERM')
  }
  expect([await image.exited, (await said).join('').includes('gth_')]).toEqual([0, false])
})
