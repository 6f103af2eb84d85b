/** A WebSocket as its client, for text alone. It can be paused, so that a slow reader slows the server. */

export interface SocketHandlers {
  /** A text frame. At a binary one `closed` is called instead. */
  received(text: string): void
  /** The connection has ended or could not be opened, by anyone but `close`; called once. */
  closed(reason: string): void
}

export interface ClientSocket {
  /** What is sent before the connection is open waits for it. */
  send(text: string): void
  /** Bytes that wait to leave. */
  readonly bufferedAmount: number
  pause(): void
  resume(): void
  close(): void
}

/** Headers that belong to the handshake itself, or to bodies. */
const ofHandshake = /^(?:accept|accept-encoding|content-type|content-length|connection|upgrade|host|sec-websocket-.*)$/

/** Dials a WebSocket with these headers, but for those of the handshake itself. */
export function dialSocket(
  url: string,
  headers: Readonly<Record<string, string>>,
  handlers: SocketHandlers,
): ClientSocket {
  const sent = Object.fromEntries(Object.entries(headers).filter(([name]) => !ofHandshake.test(name)))
  const proxy = proxyOf(new URL(url), process.env)
  const socket = new WebSocket(url, { headers: sent, ...(proxy !== null && { proxy }) })
  let ended = false
  let reason = ''
  const waiting: string[] = []
  let waitingLength = 0
  const end = (why: string) => {
    if (ended) return
    ended = true
    handlers.closed(why)
  }
  socket.addEventListener('open', () => {
    for (const text of waiting.splice(0)) socket.send(text)
    waitingLength = 0
  })
  socket.addEventListener('message', ({ data }) => {
    if (ended) return
    if (typeof data === 'string') return handlers.received(data)
    end('it sent a binary frame')
    socket.terminate()
  })
  // The message of a failed handshake names its status, and the address without its credential.
  socket.addEventListener('error', (event) => {
    reason = 'message' in event && typeof event.message === 'string' ? event.message : 'the connection failed'
  })
  socket.addEventListener('close', ({ code, reason: said }) => {
    end(reason || `it closed the connection with code ${code}${said === '' ? '' : `: ${said}`}`)
  })
  return {
    send(text) {
      if (ended) return
      if (socket.readyState === WebSocket.OPEN) return void socket.send(text)
      waiting.push(text)
      waitingLength += text.length
    },
    get bufferedAmount() {
      return socket.bufferedAmount + waitingLength
    },
    pause: () => void socket.pause(),
    resume: () => void socket.resume(),
    close() {
      ended = true
      socket.close(1000)
      // A server that does not answer the close keeps nothing open.
      setTimeout(() => socket.terminate(), closeMilliseconds).unref()
    },
  }
}

const closeMilliseconds = 2000
type Environment = Readonly<Record<string, string | undefined>>

/** The proxy that the environment names for an address, as fetch takes it; null if there is none. */
export function proxyOf({ protocol, hostname, port }: URL, environment: Environment): string | null {
  const read = (name: string) => environment[name] || environment[name.toUpperCase()] || ''
  const proxy = read(protocol === 'wss:' ? 'https_proxy' : 'http_proxy')
  const isExcepted = read('no_proxy')
    .split(',')
    .map((name) => name.trim().replace(/^\*?\./, ''))
    .some((name) => name === '*' || `${hostname}:${port}` === name || hostname === name || isBelow(hostname, name))
  return proxy === '' || isExcepted ? null : proxy
}

const isBelow = (hostname: string, name: string): boolean => name !== '' && hostname.endsWith(`.${name}`)

/** `https://host/v1` as an address of a WebSocket. */
export const socketAddress = (base: string): string => base.replace(/^http/i, 'ws')
