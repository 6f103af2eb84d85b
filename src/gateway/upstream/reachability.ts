/**
 * Applies the connect deadline. fetch does not report when it is connected. So a provider that is silent for half of
 * the deadline is dialled separately, and if that connection is not made within the other half it is unreachable. A
 * host that drops packets is thus detected long before the first-byte deadline.
 *
 * One dial serves all calls to an address, and its result is valid for half the deadline. If the environment names a
 * proxy, calls connect to the proxy, and nothing is dialled.
 */
import { connect as dialSocket } from 'node:net'
import type { Clock } from '../../lib/clock.ts'

/** Resolves when a connection was made, and closes it. Rejects when none is made in time. */
export type Dial = (origin: string, milliseconds: number) => Promise<void>

interface Dialled {
  /** Monotonic milliseconds of the start. */
  at: number
  /** Null while the dial runs. */
  connected: boolean | null
}

export class Reachability {
  readonly #dialled = new Map<string, Dialled>()
  readonly #dial: Dial
  readonly #clock: Clock

  constructor(clock: Clock, dial: Dial) {
    this.#clock = clock
    this.#dial = dial
  }

  /**
   * Whether a call to this address, silent since `since`, has no connection; null before it is known. Dials when it is
   * time. `deadline` is in milliseconds.
   */
  unreachable(origin: string, since: number, deadline: number): boolean | null {
    const now = this.#clock.monotonic()
    const half = deadline / 2
    if (now - since < half) return null
    const known = this.#dialled.get(origin)
    if (known !== undefined && (known.connected === null || now - known.at < deadline)) {
      return known.at < since || known.connected === null ? null : !known.connected
    }
    this.#start(origin, now, half)
    return null
  }

  #start(origin: string, at: number, milliseconds: number): void {
    const dialled: Dialled = { at, connected: null }
    this.#dialled.set(origin, dialled)
    this.#dial(origin, milliseconds).then(
      () => {
        dialled.connected = true
      },
      () => {
        // The cause does not matter: there is no connection.
        dialled.connected = false
      },
    )
  }
}

/** Dials by TCP. */
export const dialTcp: Dial = (origin, milliseconds) =>
  new Promise((resolve, reject) => {
    const { protocol, hostname, port } = new URL(origin)
    const socket = dialSocket({
      host: hostname.replace(/^\[|\]$/g, ''),
      port: Number(port) || (protocol === 'https:' ? 443 : 80),
    })
    const timer = setTimeout(() => socket.destroy(new Error('No connection in time')), milliseconds)
    socket.once('connect', () => {
      clearTimeout(timer)
      socket.destroy()
      resolve()
    })
    socket.once('error', (error) => {
      clearTimeout(timer)
      reject(error)
    })
  })

const proxyVariables = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'http_proxy', 'https_proxy', 'all_proxy']

/** Whether calls go through a proxy that the environment names. */
export const usesProxy = (environment: Readonly<Record<string, string | undefined>>): boolean =>
  proxyVariables.some((name) => environment[name] !== undefined && environment[name] !== '')
