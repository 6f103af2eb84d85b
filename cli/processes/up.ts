/**
 * `up`: everything on one host. This process only supervises: it opens no database and serves nothing, so nothing that
 * fails in a server takes it along. It (1) holds the lock on the data directory, (2) settles the ports, so that a
 * restarted child comes back where it was, (3) starts the control plane, and the gateway, which waits for what the
 * control plane says, (4) announces once both are ready, (5) on SIGTERM or SIGINT drains the gateway, then the control
 * plane.
 */

import { resolve } from 'node:path'
import { defineCommand } from 'citty'
import { type SettingName, type Settings, secretSettings, settingsEnvironment } from '../../src/config.ts'
import { Failure } from '../../src/failure.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { localUrl, reserveAddress } from '../../src/lib/http/listen.ts'
import { lockDirectory } from '../../src/lib/lock.ts'
import { createLog } from '../../src/lib/log/json-log.ts'
import { readSettings, settingFlags } from '../command/settings.ts'
import type { Terminal } from '../terminal/terminal.ts'
import type { ControlPlaneReady, Handover } from './child-message.ts'
import { announce, firstStartFlags, keepToken } from './first-start.ts'
import { recordingTime } from './lifecycle.ts'
import { alreadyRunning, dataFailure, startFailure } from './start-failure.ts'
import { stopSignal } from './stop-signal.ts'
import { type Child, type ChildOptions, keepRunning, type ReadyMessage } from './supervisor.ts'
import { endFormerWorkers, keepWorkers } from './workers.ts'

export const up = (terminal: Terminal) =>
  defineCommand({
    meta: {
      description:
        'Serve everything on this host: control plane and gateway; Ctrl-C, or SIGTERM to this process, stops it',
    },
    args: { ...settingFlags(['api_url']), ...firstStartFlags },
    async run({ args }) {
      const { settings } = readSettings(args, terminal.environment)
      await serveHost(settings, terminal, (started) => announce({ ...started, args, terminal }))
      process.exit(0)
    },
  })

/** What is served, once all of it is ready. */
export interface Served extends Started {
  /** With the ports that were taken. */
  settings: Settings
}

/**
 * Serves all on this host until a signal asks it to stop. `say` tells that all is ready, and is given what resolves when
 * a stop is asked for; where it fails, all stops.
 */
export async function serveHost(
  loaded: Settings,
  terminal: Terminal,
  say: (served: Served, stopAsked: Promise<void>) => Promise<void>,
): Promise<void> {
  holdDirectory(loaded.data)
  const settings = settle(loaded)
  const children: Child[] = []
  const stop = stopRequest(children)
  try {
    const started = await Promise.race([start(settings, children, terminal, stop), stop.asked.then(() => null)])
    if (started) {
      await say({ settings, ...started }, stop.asked)
      for (const child of children) child.announced()
    }
    await stop.asked
  } finally {
    await stopAll(children, settings.drain_seconds * 1000)
  }
}

/** Takes the lock for as long as this process lives. */
export function holdDirectory(data: string): void {
  let lock: ReturnType<typeof lockDirectory>
  try {
    lock = lockDirectory(resolve(data))
  } catch (error) {
    throw dataFailure(error, data)
  }
  if (lock === null) {
    throw alreadyRunning(resolve(data), `The data directory ${resolve(data)} is in use by another gatehouse`)
  }
}

/** The settings with nothing left to chance: real ports, absolute paths, the gateway's address. */
function settle(loaded: Settings): Settings {
  const controlPlane = reserve(loaded, 'control_plane_listen')
  const gateway = reserve(loaded, 'gateway_listen')
  controlPlane.release()
  gateway.release()
  return {
    ...loaded,
    control_plane_listen: controlPlane.address,
    gateway_listen: gateway.address,
    data: resolve(loaded.data),
    gateway_url: loaded.gateway_url ?? localUrl(gateway.address),
  }
}

export function reserve(settings: Settings, listen: 'control_plane_listen' | 'gateway_listen') {
  try {
    return reserveAddress(settings[listen])
  } catch (error) {
    throw startFailure(error, settings, listen)
  }
}

export interface StopRequest {
  asked: Promise<void>
  wasAsked(): boolean
}

/**
 * The first signal asks for a drain, a second one ends the children at once. A signal to the whole process group ends
 * the children too: none of them is restarted.
 */
export function stopRequest(children: readonly Child[]): StopRequest {
  const { promise, resolve: ask } = Promise.withResolvers<void>()
  let wasAsked = false
  const onSignal = stopSignal(
    systemClock,
    () => {
      wasAsked = true
      for (const child of children) child.retire()
      ask()
    },
    () => {
      for (const child of children) void child.stop(0)
    },
  )
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
  return { asked: promise, wasAsked: () => wasAsked }
}

interface Started {
  plane: ControlPlaneReady
  gatewayUrl: string
}

/** Null where a stop was asked for before all was started. */
async function start(
  settings: Settings,
  children: Child[],
  terminal: Terminal,
  stop: StopRequest,
): Promise<Started | null> {
  const log = createLog({ level: settings.log_level, fields: { process: 'up' }, destination: 'stderr' })
  const keep = (
    kept: Pick<ChildOptions, 'name' | 'environment' | 'onMessage' | 'onHandover' | 'handover'>,
    words: readonly string[],
  ) => {
    const child = keepRunning({ ...kept, command: [...self(), ...words], clock: systemClock, log })
    children.unshift(child)
    return child
  }
  const { api_url: _, api_token: __, ...own } = settings
  let handed: Handover | null = null
  const known = Promise.withResolvers<void>()
  const onMessage = (message: ReadyMessage) => {
    if (message.ready !== 'control-plane' || handed === null || message.runtime_token === handed.api_token) return
    handed = handoverOf(message)
    log.warn({ child: 'gateway' }, 'The gateway has another runtime token: it is started again with it')
    const drainTime = settings.drain_seconds * 1000 + recordingTime + 500
    for (const worker of workers) void worker.renew(drainTime)
  }
  const planeReady = keep(
    {
      name: 'control-plane',
      environment: { ...compileLater, ...withoutServiceVariables(), ...settingsEnvironment(own) },
      onMessage,
      onHandover({ api_token, state_file }) {
        handed ??= { api_token, state_file }
        known.resolve()
      },
    },
    ['control-plane'],
  ).ready
  // `await planeReady` below reports the reason.
  planeReady.catch(() => known.resolve())
  const handover = async () => {
    await known.promise
    return handed
  }
  const environment = gatewayEnvironment(own)
  const workers = keepWorkers(settings, ['--handover'], (name, words) => keep({ name, environment, handover }, words))
  const allReady = Promise.all(workers.map(({ ready }) => ready))
  // It is awaited below; it may fail before that.
  allReady.catch(() => undefined)
  const plane = await planeReady
  if (plane.ready !== 'control-plane') throw new Failure('process_failed')
  if (stop.wasAsked()) {
    keepToken({ settings, plane, terminal })
    return null
  }
  try {
    const stateFile = plane.state_file === null ? [] : ['--state-file', plane.state_file]
    endFormerWorkers(settings, self(), gatewayEnvironment({ ...own, api_token: plane.runtime_token }), stateFile)
    const [gateway] = await allReady
    if (gateway?.ready !== 'gateway') throw new Failure('process_failed')
    return { plane, gatewayUrl: settings.gateway_url ?? gateway.url }
  } catch (error) {
    keepToken({ settings, plane, terminal })
    throw error
  }
}

const handoverOf = ({ runtime_token, state_file }: ControlPlaneReady): Handover => ({
  api_token: runtime_token,
  state_file,
})

const gatewayEnvironment = (own: Omit<Settings, 'api_url'>): Environment =>
  gatewayProcessEnvironment({ ...own, api_url: localUrl(own.control_plane_listen) })

/**
 * How often JavaScriptCore counts a function before it compiles it, eight times its own count. What runs at a start
 * runs a few times, and a third of a start's processor time went to compiling it. What serves requests is compiled
 * within the first few hundred.
 */
const compileLater: Environment = { BUN_JSC_thresholdForJITAfterWarmUp: '4000' }

/**
 * By the memory that JavaScriptCore takes the host to have it decides how far a heap may grow before it is collected.
 * By the real one (24 GiB) a gateway's comes to 126 to 150 MiB resident under load, by this to 125 to 136, for the same
 * processor time a request; and on a larger host it is the same. It is no limit: what lives may be more.
 */
const collectAsOnMebibytes = 384

/** What a gateway is started with: every setting, and nothing else of ours. */
export const gatewayProcessEnvironment = (settings: Settings): Environment => ({
  ...compileLater,
  BUN_JSC_forceRAMSize: String(collectAsOnMebibytes * 1024 ** 2),
  ...withoutSecrets(withoutServiceVariables()),
  ...settingsEnvironment(settings, secretsOfControlPlanes),
  // Bun lets 256 calls to providers run at once unless told otherwise before it starts; the rest would hang.
  BUN_CONFIG_MAX_HTTP_REQUESTS: '65000',
})

/** The command line of this executable, also where it runs from source. */
export const self = (): string[] =>
  Bun.main.startsWith('/$bunfs/') ? [process.execPath] : [process.execPath, Bun.main]

type Environment = Record<string, string | undefined>

/** Children are given every setting by the supervisor; what else of ours stands in the environment is not for them. */
const withoutServiceVariables = (): Environment =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('SERVICE_')))

/** Of the secrets among the settings a gateway has those that it uses itself. */
const secretsOfGateways: ReadonlySet<SettingName> = new Set(['api_token', 'otlp_headers'])
const secretsOfControlPlanes = secretSettings.difference(secretsOfGateways)

/** A gateway has its providers' credentials from the control plane. */
const withoutSecrets = (environment: Environment): Environment =>
  Object.fromEntries(Object.entries(environment).filter(([name]) => !name.endsWith('_API_KEY')))

/** What the control plane has at least, in milliseconds, where the gateway has used up the time. */
const controlPlaneTime = 2_000

/**
 * Stops all before the eldest, which stands last: the gateways need the control plane to hand their events to.
 * It ends by itself within its time to drain and to record, and is killed only when it does not.
 */
async function stopAll(children: readonly Child[], drainMilliseconds: number): Promise<void> {
  const end = systemClock.monotonic() + drainMilliseconds
  await Promise.all(children.slice(0, -1).map((child) => child.stop(drainMilliseconds + recordingTime + 500)))
  await children.at(-1)?.stop(Math.max(end - systemClock.monotonic(), controlPlaneTime))
}
