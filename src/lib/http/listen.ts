/** Addresses to listen at, as `HOST:PORT`. */

/** The largest request line and header block that a listener reads (gateway/README.md, Limits). */
const headerBlockBytes = 32 * 1024

/** The option of Bun that sets it. The executable carries it. */
export const headerBlockOption = `--max-http-header-size=${headerBlockBytes}`

interface HostAndPort {
  host: string
  port: number
}

export function splitAddress(address: string): HostAndPort {
  const colon = address.lastIndexOf(':')
  return { host: address.slice(0, colon).replace(/^\[|\]$/g, ''), port: Number(address.slice(colon + 1)) }
}

const joinAddress = ({ host, port }: HostAndPort): string => `${host.includes(':') ? `[${host}]` : host}:${port}`

/**
 * The address with a real port, reserved until it is released. This finds a free port, and finds out before anything
 * starts whether the address is available. Throws the system's error.
 */
export function reserveAddress(address: string): { address: string; release(): void } {
  const { host, port } = splitAddress(address)
  const probe = Bun.listen({ hostname: host, port, socket: { data: () => undefined } })
  return { address: joinAddress({ host, port: probe.port }), release: () => probe.stop(true) }
}

/** The address at which a process on this host reaches the listener; `port` if the system chose the port. */
export function localUrl(address: string, port?: number): string {
  const { host, port: written } = splitAddress(address)
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `http://${joinAddress({ host: reachable, port: port ?? written })}`
}

/**
 * Options for `Bun.serve`. Bun answers larger headers itself, with 431 and no body, before any of our code runs. The
 * limit is one for the process. Run from source it is set where Node.js has it, without a type for it.
 */
export function listenOn(address: string): { hostname: string; port: number } {
  if (!process.execArgv.includes(headerBlockOption)) {
    Reflect.set(process.getBuiltinModule('node:http'), 'maxHeaderSize', headerBlockBytes)
  }
  const { host, port } = splitAddress(address)
  return { hostname: host, port }
}
