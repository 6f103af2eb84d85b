/**
 * Real coding agents, fetched from npm into a scratch folder: each does a task with one call of a tool, straight at the
 * scripted provider and through the gateway, which `gatehouse connect … --write` configures. What cannot be fetched or
 * does not end in time is skipped with its reason.
 */
import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base'
import { recipes } from '../../../src/clients/index.ts'
import { cleanEnvironment, collect, run, temporaryDirectory } from '../../support/harness.ts'
import type { Installation } from './matrix.ts'
import { columns } from './rows-and-columns.ts'
import { playRealTask } from './scripted-provider.ts'

interface Agent {
  client: string
  package: string
  version: string
  /** Below `node_modules`. */
  bin: string
  arguments: readonly string[]
  environment?: Readonly<Record<string, string>>
  /** By the provider's own name. */
  model: string
  /** A provider that speaks another language. */
  other: string
}

const task = 'Run one shell command and say what it printed.'
const fetchMs = 120_000
const taskMs = 60_000

export const agents: readonly Agent[] = [
  {
    ...{ client: 'claude-code', package: '@anthropic-ai/claude-code', version: '2.1.328', bin: '.bin/claude' },
    arguments: ['-p', task, '--allowedTools', 'Bash'],
    environment: { CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1' },
    ...{ model: 'claude-opus-5-5', other: 'openai' },
  },
  {
    ...{ client: 'codex', package: '@openai/codex', version: '0.169.0', bin: '.bin/codex' },
    arguments: ['exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', task],
    ...{ model: 'gpt-5.5', other: 'anthropic' },
  },
  {
    // The package links its program by a script, which is not run.
    ...{ client: 'opencode', package: 'opencode-ai', version: '1.18.33' },
    bin: `opencode-${process.platform}-${process.arch}/bin/opencode`,
    arguments: ['run', task],
    environment: { OPENCODE_DISABLE_AUTOUPDATE: '1', OPENCODE_DISABLE_MODELS_FETCH: '1' },
    ...{ model: 'gpt-5.5', other: 'gemini' },
  },
  {
    ...{ client: 'gemini-cli', package: '@google/gemini-cli', version: '0.61.0', bin: '.bin/gemini' },
    arguments: ['--skip-trust', '--yolo', '-p', task],
    ...{ model: 'gemini-3.1-pro-preview', other: 'bedrock-claude' },
  },
]

export interface RealRun {
  agent: string
  way: string
  /** Why there are no figures, or null. */
  skipped: string | null
  requests: number
  /** Of all requests that reached the provider, as o200k counts their bodies. */
  tokens: number
}

/** Runs every agent direct, through the gateway, and through it at a provider of another language. */
export async function* runRealAgents(installation: Installation): AsyncGenerator<RealRun> {
  playRealTask(installation.upstream, ['', ...columns.map(({ upstreamModel }) => upstreamModel)])
  for (const agent of agents) {
    const folder = temporaryDirectory()
    const missing = await fetchAgent(agent, folder)
    const ways = [
      { way: 'direct', model: agent.model, configure: configureDirect },
      { way: 'through Gatehouse', model: agent.model, configure: configureThrough },
      { way: `through Gatehouse to ${agent.other}`, model: agent.other, configure: configureThrough },
    ]
    for (const { way, model, configure } of ways) {
      const none = { agent: `${agent.client} ${agent.version}`, way, requests: 0, tokens: 0 }
      if (missing === null) yield { ...none, ...(await perform(agent, folder, installation, model, configure)) }
      else yield { ...none, skipped: missing }
    }
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Installs the package without running its scripts. Gives the reason where it cannot be. */
async function fetchAgent(agent: Agent, folder: string): Promise<string | null> {
  await Bun.write(join(folder, 'package.json'), '{}')
  const command = [process.execPath, 'add', '--ignore-scripts', `${agent.package}@${agent.version}`]
  const { code, output } = await within(command, { cwd: folder, env: processEnvironment(), milliseconds: fetchMs })
  if (code === null) return `npm did not give the package within ${fetchMs / 1000} s`
  return code === 0 ? null : `npm did not give the package: ${lastLine(output)}`
}

/** The npm settings of the person who runs this, such as a proxy. */
const processEnvironment = (): Record<string, string> =>
  Object.fromEntries(
    Object.entries(process.env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  )

type Configure = (
  agent: Agent,
  home: string,
  installation: Installation,
  model: string,
) => Promise<Record<string, string> | string>

/** The recipe of `connect` with the provider's address in place of the gateway's. */
const configureDirect: Configure = async (agent, home, { upstream }, model) => {
  const recipe = recipes.find(({ name }) => name === agent.client)
  if (recipe === undefined) return 'connect does not know it'
  const { origin } = new URL(upstream.baseUrl)
  const { files, environment } = recipe.setup({ gatewayUrl: origin, models: [model], token: 'key', tokenFile: null })
  for (const { path, text } of files) {
    mkdirSync(dirname(join(home, path)), { recursive: true })
    await Bun.write(join(home, path), text)
  }
  return { ...environment }
}

const configureThrough: Configure = async (agent, home, { gatehouse }, model) => {
  const env = { HOME: home, SERVICE_API_URL: gatehouse.baseUrl, SERVICE_API_TOKEN: gatehouse.adminToken }
  const { code, stderr } = await run(['connect', agent.client, '--model', model, '--write', '--yes', '--skip-check'], {
    env,
  })
  return code === 0 ? {} : `connect failed: ${lastLine(stderr)}`
}

async function perform(
  agent: Agent,
  folder: string,
  installation: Installation,
  model: string,
  configure: Configure,
): Promise<Pick<RealRun, 'skipped' | 'requests' | 'tokens'>> {
  const home = temporaryDirectory()
  const workingDirectory = join(home, 'work')
  mkdirSync(workingDirectory)
  const none = { requests: 0, tokens: 0 }
  const configured = await configure(agent, home, installation, model)
  if (typeof configured === 'string') return { skipped: configured, ...none }
  const { upstream } = installation
  upstream.forget()
  const env = cleanEnvironment({ ...configured, ...agent.environment, HOME: home })
  const command = [join(folder, 'node_modules', agent.bin), ...agent.arguments]
  if (!existsSync(command[0] ?? '')) return { skipped: 'its package has no program for this machine', ...none }
  const { code, output } = await within(command, { cwd: workingDirectory, env, milliseconds: taskMs })
  const bodies = upstream.calls.map(({ body }) => body.toString()).filter((body) => body !== '')
  const tokens = bodies.reduce((sum, body) => sum + countTokens(body), 0)
  rmSync(home, { recursive: true, force: true })
  const figures = { requests: bodies.length, tokens }
  if (code === null) return { skipped: `it did not end within ${taskMs / 1000} s`, ...figures }
  if (!bodies.some((body) => body.includes('from the tool') && body.includes('call_')))
    return { skipped: `the tool was not run: ${lastLine(output)}`, ...figures }
  if (!output.includes('東京')) return { skipped: `it did not show the answer: ${lastLine(output)}`, ...figures }
  return { skipped: null, ...figures }
}

interface Limits {
  cwd: string
  env: Record<string, string>
  milliseconds: number
}

/** The exit code is null where the time was over and the program was ended. */
async function within(
  command: string[],
  { cwd, env, milliseconds }: Limits,
): Promise<{ code: number | null; output: string }> {
  const child = Bun.spawn(command, { cwd, env, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)]
  const ended = await Promise.race([child.exited, Bun.sleep(milliseconds).then(() => null)])
  if (ended === null) child.kill('SIGKILL')
  return { code: ended, output: stdout() + stderr() }
}

const lastLine = (text: string): string => text.trim().split('\n').at(-1)?.slice(0, 200) ?? ''
