/**
 * Gateways of others, fetched when the bench is asked for them: Portkey's from npm and LiteLLM's proxy from PyPI, each
 * with the same provider and nothing switched on. The versions are fixed, so that two runs compare the same programs.
 * Some versions of LiteLLM on PyPI held a program that stole credentials (BerriAI/litellm issue 24518): this one is
 * started with an environment that has none.
 */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '../../support/eventually.ts'
import { repository } from '../../support/executable.ts'
import { freePort } from '../../support/free-port.ts'
import { collect } from '../../support/harness.ts'
import { descendantsOf, signal } from '../../support/processes.ts'
import { benchModel, requestBody, requestHeaders, type Target } from '../rig/target.ts'
import type { Contender } from './contenders.ts'

const portkeyPackage = '@portkey-ai/gateway@1.15.2'
const liteLlmVersion = '1.100.5'
/** Fetching may take minutes; a start from what was fetched does not. */
const fetchMs = 600_000
const startMs = 180_000

export interface Peer extends AsyncDisposable {
  contender: Contender
}

/** A peer that runs, or why there is none. */
export type Found = Peer | { skipped: string }

const cleanEnvironment = (extra: Readonly<Record<string, string>>): Record<string, string> => ({
  PATH: process.env.PATH ?? '',
  HOME: process.env.HOME ?? '',
  ...extra,
})

interface Start {
  name: string
  command: readonly string[]
  environment: Readonly<Record<string, string>>
  target: Target
}

/** Starts a peer and waits until it answers a request of the bench with 200. */
async function start({ name, command, environment, target }: Start): Promise<Found> {
  const child = Bun.spawn([...command], { env: cleanEnvironment(environment), stdout: 'pipe', stderr: 'pipe' })
  const said = [collect(child.stdout), collect(child.stderr)]
  const end = async () => {
    for (const pid of [...descendantsOf(child.pid), child.pid]) signal(pid, 'SIGKILL')
    await child.exited
  }
  const asked = { method: 'POST', headers: requestHeaders(target), body: requestBody(false) }
  try {
    const answers = async () => {
      if (child.exitCode !== null) return `it ended with ${child.exitCode}: ${lastOf(said)}`
      const answer = await fetch(target.url, { ...asked, signal: AbortSignal.timeout(10_000) })
      const text = await answer.text()
      const wrong = answer.ok ? null : `it answers ${answer.status}: ${text.slice(0, 200)}`
      // It may still be starting.
      if (answer.status >= 500) throw new Error(`${wrong}`)
      return wrong
    }
    const wrong = await eventually(answers, { withinMs: startMs, everyMs: 500 })
    if (wrong !== null) throw new Error(wrong)
  } catch (error) {
    await end()
    return { skipped: `${name}: ${error instanceof Error ? error.message : error} (${lastOf(said)})` }
  }
  const pids = [child.pid, ...descendantsOf(child.pid)]
  return { contender: { name, target, pids }, [Symbol.asyncDispose]: end }
}

const lastOf = (said: readonly (() => string)[]): string =>
  said
    .map((text) => text().trim().split('\n').at(-1) ?? '')
    .filter((line) => line !== '')
    .join('; ')
    .slice(0, 300)

const path = '/v1/chat/completions'

export async function startPortkey(upstream: string): Promise<Found> {
  if (Bun.which('npx') === null) return { skipped: 'Portkey: npx is not installed' }
  const port = await freePort()
  const headers = { 'x-portkey-provider': 'openai', 'x-portkey-custom-host': `${upstream}/portkey/v1` }
  return await start({
    name: 'Portkey',
    command: ['npx', '--yes', portkeyPackage, `--port=${port}`, '--headless'],
    environment: { NODE_ENV: 'production' },
    target: { name: 'Portkey', url: `http://127.0.0.1:${port}${path}`, token: 'none', headers },
  })
}

export async function startLiteLlm(upstream: string): Promise<Found> {
  const program = await installLiteLlm()
  if (typeof program !== 'string') return program
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-litellm-'))
  const file = join(directory, 'config.yaml')
  const parameters = { model: `openai/${benchModel}`, api_base: `${upstream}/litellm/v1`, api_key: 'none' }
  // JSON is YAML too.
  writeFileSync(file, JSON.stringify({ model_list: [{ model_name: benchModel, litellm_params: parameters }] }))
  const port = await freePort()
  const found = await start({
    name: 'LiteLLM',
    command: [program, '--config', file, '--host', '127.0.0.1', '--port', String(port)],
    environment: { LITELLM_LOCAL_MODEL_COST_MAP: 'True', LITELLM_LOG: 'ERROR' },
    target: { name: 'LiteLLM', url: `http://127.0.0.1:${port}${path}`, token: 'none' },
  })
  rmSync(directory, { recursive: true, force: true })
  return found
}

/** Puts it into an environment of its own, kept for later runs, and gives the path of its program. */
async function installLiteLlm(): Promise<string | { skipped: string }> {
  const python = Bun.which('python3')
  if (python === null) return { skipped: 'LiteLLM: python3 is not installed' }
  const folder = join(repository, 'node_modules/.cache/gatehouse-bench')
  const environment = join(folder, `litellm-${liteLlmVersion}`)
  const program = join(environment, 'bin/litellm')
  if (existsSync(program)) return program
  mkdirSync(folder, { recursive: true })
  for (const command of [
    [python, '-m', 'venv', environment],
    [join(environment, 'bin/pip'), 'install', '--quiet', `litellm[proxy]==${liteLlmVersion}`],
  ]) {
    const child = Bun.spawn(command, { stdout: 'ignore', stderr: 'pipe', timeout: fetchMs })
    const said = collect(child.stderr)
    if ((await child.exited) !== 0)
      return { skipped: `LiteLLM ${liteLlmVersion} cannot be installed: ${lastOf([said])}` }
  }
  return program
}
