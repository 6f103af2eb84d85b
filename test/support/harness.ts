/**
 * Runs the real executable as a person would, `gatehouse up` on free ports and a data directory of its own, in front of
 * a fake provider. `await using` or `stop` ends it with everything it started; what is left behind where a test could
 * not is killed with the test run, by `--no-orphans`, or at the exit of a program that is no test.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ReadyLine, readyLine } from './answers.ts'
import { eventually, until } from './eventually.ts'
import { executable } from './executable.ts'
import { childrenOf, descendantsOf, isAlive, listensOn, signal } from './processes.ts'

export interface StartOptions {
  env?: Readonly<Record<string, string>>
  flags?: readonly string[]
  /** An existing directory to start on, kept by `stop`; without it a new one that `stop` removes. */
  dataDirectory?: string
  /** The provider's address; without it only the simulator answers. */
  upstream?: { baseUrl: string }
  workingDirectory?: string
  executablePath?: string
  /** The token of an earlier first start of the same directory. */
  adminToken?: string
}

export interface Gatehouse extends AsyncDisposable {
  baseUrl: string
  gatewayUrl: string
  adminToken: string
  ready: ReadyLine
  dataDirectory: string
  supervisorPid: number
  /** Milliseconds from the start of the process to its ready line. */
  startUpMs: number
  /** The child that listens for API calls, and the one that listens for model traffic, as of now. */
  controlPlanePid(): number
  gatewayPid(): number
  stdout(): string
  stderr(): string
  /** Sends a signal to the supervisor and gives its exit code. */
  end(name: NodeJS.Signals): Promise<number>
  /** Kills what still runs and removes what was made. */
  stop(): Promise<void>
}

/** The provider key every test installation has; it must never be seen outside. */
export const providerKey = 'sk-fake-provider-key-1f3a9c'

/**
 * Without JavaScriptCore's optimising compilers and parallel collectors a start takes two thirds of the processor time,
 * and a process of a test ends before they pay. Benchmarks, which are no tests, have them.
 */
const shortLived =
  process.env.NODE_ENV === 'test' ? { BUN_JSC_useDFGJIT: '0', BUN_JSC_numberOfGCMarkers: '1' } : undefined

/** A process environment with nothing in it but what is given: no setting leaks in from whoever runs the tests. */
export const cleanEnvironment = (extra: Readonly<Record<string, string>> = {}): Record<string, string> => ({
  ...shortLived,
  PATH: process.env.PATH ?? '',
  HOME: temporaryHome,
  NO_COLOR: '1',
  ...extra,
})

const temporaryHome = mkdtempSync(join(tmpdir(), 'gatehouse-home-'))
const running = new Set<number>()

process.on('exit', () => {
  for (const pid of running) for (const found of [pid, ...descendantsOf(pid)]) signal(found, 'SIGKILL')
  rmSync(temporaryHome, { recursive: true, force: true })
})

export const temporaryDirectory = (): string => mkdtempSync(join(tmpdir(), 'gatehouse-test-'))

/** Starts `up` and waits for its ready line. Throws with all it said where it ends instead. */
export async function startGatehouse(options: StartOptions = {}): Promise<Gatehouse> {
  const dataDirectory = options.dataDirectory ?? join(temporaryDirectory(), 'data')
  const startedAt = performance.now()
  const child = Bun.spawn(await upCommand(dataDirectory, options), {
    cwd: options.workingDirectory ?? temporaryHome,
    env: cleanEnvironment({
      ...(options.upstream && {
        OPENAI_API_KEY: providerKey,
        OPENAI_BASE_URL: options.upstream.baseUrl,
        ANTHROPIC_API_KEY: providerKey,
        ANTHROPIC_BASE_URL: options.upstream.baseUrl,
      }),
      ...options.env,
    }),
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  running.add(child.pid)
  const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)]
  const stop = async () => {
    const family = [child.pid, ...descendantsOf(child.pid)]
    for (const pid of family) signal(pid, 'SIGKILL')
    await child.exited
    await until('all processes have ended', () => !family.some(isAlive))
    running.delete(child.pid)
    if (!options.dataDirectory) rmSync(join(dataDirectory, '..'), { recursive: true, force: true })
  }
  const ready = await eventually(
    () => {
      const line = stdout()
        .split('\n')
        .find((text) => text.startsWith('{"ready":true'))
      if (line) return readyLine.parse(JSON.parse(line))
      throw new Error(`up is not ready (exit code ${child.exitCode})\nstdout: ${stdout()}\nstderr: ${stderr()}`)
    },
    { withinMs: 60_000, everyMs: 2 },
  ).catch(async (error) => {
    await stop()
    throw error
  })
  const startUpMs = performance.now() - startedAt
  return {
    baseUrl: ready.base_url,
    gatewayUrl: ready.gateway_url,
    adminToken: ready.admin_token ?? options.adminToken ?? '',
    ready,
    dataDirectory,
    supervisorPid: child.pid,
    startUpMs,
    controlPlanePid: () => childOnPort(child.pid, ready.base_url),
    gatewayPid: () => childOnPort(child.pid, ready.gateway_url),
    stdout,
    stderr,
    async end(name) {
      signal(child.pid, name)
      return await child.exited
    },
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

async function upCommand(dataDirectory: string, options: StartOptions): Promise<string[]> {
  return [
    options.executablePath ?? (await executable()),
    'up',
    '--json',
    ...['--data', dataDirectory],
    ...['--control-plane-listen', '127.0.0.1:0'],
    ...['--gateway-listen', '127.0.0.1:0'],
    ...(options.flags ?? []),
  ]
}

function childOnPort(supervisor: number, url: string): number {
  const port = Number(new URL(url).port)
  const found = childrenOf(supervisor).find((pid) => listensOn(pid, port))
  if (found === undefined) throw new Error(`No child of the supervisor listens on ${url}`)
  return found
}

/** Reads a pipe to its end in the background; gives what has come so far. */
export function collect(stream: ReadableStream<Uint8Array>): () => string {
  const decoder = new TextDecoder()
  let text = ''
  void (async () => {
    for await (const bytes of stream) text += decoder.decode(bytes, { stream: true })
  })()
  return () => text
}

export interface Ran {
  code: number
  stdout: string
  stderr: string
}

/** Runs an operator command to its end. */
export async function run(
  args: readonly string[],
  {
    env = {},
    workingDirectory = temporaryHome,
    executablePath,
  }: Pick<StartOptions, 'env' | 'workingDirectory' | 'executablePath'> = {},
): Promise<Ran> {
  const child = Bun.spawn([executablePath ?? (await executable()), ...args], {
    cwd: workingDirectory,
    env: cleanEnvironment(env),
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [code, stdout, stderr] = await Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ])
  return { code, stdout, stderr }
}

/** Runs an operator command against an installation, as its administrator. */
export const operate = (gatehouse: Gatehouse, ...args: string[]): Promise<Ran> =>
  run(args, { env: { SERVICE_API_URL: gatehouse.baseUrl, SERVICE_API_TOKEN: gatehouse.adminToken } })
