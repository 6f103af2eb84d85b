/**
 * The deadline for connecting. fetch does not tell when it is connected, so a provider that has not answered for half of
 * the deadline is dialled once beside it, and what does not take that connection within the other half is unreachable:
 * a host that swallows packets is found out long before the deadline of its first byte.
 *
 * One dialling serves all calls to an address, and its result holds for as long as the half of a deadline. Where the
 * environment names a proxy it is the proxy that is connected to, and nothing is dialled.
 */
import { connect as dialSocket } from 'node:net'
import type { Clock } from '../../lib/clock.ts'

/** Resolves when a connection was made, and lets go of it. Rejects where none is within the time. */
export type Dial = (origin: string, milliseconds: number) => Promise<void>

interface Dialled {
  /** Monotonic milliseconds of the start. */
  at: number
  /** Null while it goes on. */
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
   * Whether a call to this address, silent since `since`, has no connection: null before it is known. Dials where it is
   * time to. `deadline` is in milliseconds.
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
        // Why is the provider's network's to know: what counts is that there is no connection.
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

/** Whether calls go by a proxy that the environment names. */
export const byProxy = (environment: Readonly<Record<string, string | undefined>>): boolean =>
  proxyVariables.some((name) => environment[name] !== undefined && environment[name] !== '')
