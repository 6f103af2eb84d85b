/**
 * `demo`: an installation with sample data, for those who want to look before they install. It (1) serves control plane
 * and gateway on free ports of this host, with a data directory of its own and none of the settings or keys of the
 * environment, (2) makes sample records, (3) sends a bounded number of requests through stand-in providers on this host,
 * (4) on Ctrl-C stops, and deletes its directory unless one was named. It calls nothing outside this host.
 */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { defineCommand } from 'citty'
import { z } from 'zod'
import { Failure } from '../../../src/failure.ts'
import { type Api, createApi } from '../../command/api.ts'
import { readSettings } from '../../command/settings.ts'
import { type Served, serveHost } from '../../processes/up.ts'
import { columns } from '../../terminal/table.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { chanceFrom } from './chance.ts'
import { makeSampleRecords, type SampleRecords } from './sample-records.ts'
import { type StandIn, serveStandIn } from './stand-in-provider.ts'
import { openingRequests, sendTraffic } from './traffic.ts'

const usualRequests = 3000
const mostRequests = 100_000
const usualPerSecond = 2
const mostPerSecond = 20
/** Any: the same seed gives the same requests. */
const seed = 34

const email = 'demo@example.com'

export const demo = (terminal: Terminal) =>
  defineCommand({
    meta: {
      description:
        'Look at an installation with sample data and traffic; it uses nothing of a real one, and Ctrl-C ends and deletes it',
    },
    args: {
      data: {
        type: 'string',
        description: 'An empty directory that is kept at the end; default: one that is deleted',
        valueHint: 'DIR',
      },
      requests: {
        type: 'string',
        description: `The most requests that are sent, at least ${openingRequests} (default ${usualRequests})`,
        valueHint: 'N',
      },
      rate: {
        type: 'string',
        description: `Requests a second after the first ${openingRequests} (default ${usualPerSecond})`,
        valueHint: 'N',
      },
      json: { type: 'boolean', description: 'Print where everything is as one line of JSON' },
    },
    async run({ args }) {
      const requests = numberFlag('requests', args.requests, usualRequests, [openingRequests, mostRequests])
      const perSecond = numberFlag('rate', args.rate, usualPerSecond, [0.1, mostPerSecond])
      const kept = args.data === undefined ? null : emptyDirectory(args.data)
      const data = kept ?? mkdtempSync(join(tmpdir(), 'gatehouse-demo-'))
      forgetProviderKeys()
      const standIn = serveStandIn(chanceFrom(seed))
      const end = new AbortController()
      try {
        await serveHost(settingsFor(data), terminal, async (served, stopAsked) => {
          const started = await Promise.race([begin(served, standIn), stopAsked])
          if (started === undefined) return
          await announceDemo({ ...started, served, kept, json: args.json === true, terminal })
          const { api, records } = started
          const traffic = {
            ...{ gatewayUrl: served.gatewayUrl, secrets: records.secrets, requests, perSecond },
            ...{ chance: chanceFrom(seed), signal: end.signal, opened: () => tighten(api, records) },
          }
          const tell = (line: string) => !end.signal.aborted && terminal.note(line)
          void sendTraffic(traffic).then(
            (sent) => tell(`${sent} requests were sent. The console stays until Ctrl-C`),
            (error: unknown) => tell(`The traffic has ended: ${String(error)}. The console stays until Ctrl-C`),
          )
        })
      } finally {
        end.abort()
        await standIn.stop()
        if (kept === null) rmSync(data, { recursive: true, force: true })
      }
      process.exit(0)
    },
  })

function numberFlag(name: string, given: string | undefined, usual: number, [least, most]: readonly [number, number]) {
  const value = given === undefined ? usual : Number(given)
  if (value >= least && value <= most) return value
  throw new Failure('usage', { message: `--${name}: write a number from ${least} to ${most}` })
}

/** Throws `usage` for a directory that holds anything: it may be an installation. */
function emptyDirectory(path: string): string {
  const directory = resolve(path)
  try {
    if (readdirSync(directory).length === 0) return directory
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return directory
    throw new Failure('usage', { message: `--data: ${directory} cannot be read as a directory`, cause: error })
  }
  throw new Failure('usage', { message: `--data: ${directory} is not empty. Name a directory that is, or none` })
}

/** A start registers a provider for each key that it finds; the demonstration must call none. */
function forgetProviderKeys(): void {
  for (const name of Object.keys(process.env)) if (name.endsWith('_API_KEY')) delete process.env[name]
}

/** The defaults, on free ports, with the texts of requests in the record. Nothing is read from the environment. */
const settingsFor = (data: string) =>
  readSettings(
    { data, 'control-plane-listen': '127.0.0.1:0', 'gateway-listen': '127.0.0.1:0' },
    { SERVICE_CAPTURE_PROMPT_BYTES: '2048', SERVICE_LOG_LEVEL: 'error', SERVICE_DRAIN_SECONDS: '2' },
  ).settings

interface Begun {
  api: Api
  records: SampleRecords
  password: string
}

/** Makes the owner, who can sign in, and the sample records. */
async function begin({ plane }: Served, standIn: StandIn): Promise<Begun> {
  const api = createApi({ apiUrl: plane.base_url, apiToken: plane.admin_token }, fetch)
  const password = `look-around-${crypto.randomUUID().slice(0, 8)}`
  const secret = new URL(plane.setup_url ?? plane.base_url).hash.slice(1)
  const anonymous = createApi({ apiUrl: plane.base_url, apiToken: null }, fetch)
  const body = { secret, email, name: 'Dana Demo', password }
  await anonymous.response({ method: 'POST', path: '/v1/auth/setup', body })
  return { api, records: await makeSampleRecords(api, standIn), password }
}

const spent = z.object({ current_spend: z.number() })

/** Sets the amounts of budgets by what the opening spent. */
async function tighten(api: Api, { tightened }: SampleRecords): Promise<void> {
  for (const { id, usedShare } of tightened) {
    const path = `/v1/budgets/${id}`
    const { current_spend } = await api.json({ path }, spent)
    const max_budget = Math.max(0.01, Math.ceil((current_spend / usedShare) * 1e6) / 1e6)
    await api.response({ method: 'PATCH', path, body: { max_budget } })
  }
}

interface Announced extends Begun {
  served: Served
  kept: string | null
  json: boolean
  terminal: Terminal
}

async function announceDemo({ served, password, kept, json, terminal }: Announced): Promise<void> {
  const { plane, gatewayUrl, settings } = served
  const consoleUrl = `${plane.base_url}/console/?range=15m`
  if (json) {
    const said = { ready: true, base_url: plane.base_url, console_url: consoleUrl, gateway_url: gatewayUrl }
    const secrets = { email, password, admin_token: plane.admin_token }
    return await terminal.write(`${JSON.stringify({ ...said, ...secrets, data: settings.data })}\n`)
  }
  const end = kept === null ? 'Ctrl-C ends it and deletes its data.' : `Ctrl-C ends it; its data stays in ${kept}.`
  const places = [
    ['  console', consoleUrl],
    ['  e-mail', email],
    ['  password', password],
    ['  gateway', gatewayUrl],
  ]
  await terminal.write(
    `A demonstration with sample data is ready. Its providers are stand-ins on this host.\n\n${columns(places)}\n${end}\n`,
  )
}
