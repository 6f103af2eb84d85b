/**
 * Messages of syslog (RFC 5424) with their lengths before them, over TLS (RFC 5425, RFC 6587 section 3.4.1). Syslog has
 * no acknowledgement. So each parcel has a connection of its own, which is closed after it: RFC 5425 section 4.4 has the
 * receiver answer the close, behind everything that was sent. A parcel counts once that answer is here; where the
 * connection breaks off, it is sent again.
 */

import { connect as connectPlain, type Socket } from 'node:net'
import { hostname } from 'node:os'
import { connect as connectTls } from 'node:tls'
import { callFailure } from '../../lib/http/call-failure.ts'
import { yieldToEventLoop } from '../../lib/yield-to-event-loop.ts'
import { version } from '../../version.ts'
import { type Item, ReceiverFailed, type Sink, type SinkKind } from '../sink.ts'
import { timeoutMilliseconds } from './post.ts'

const defaultPort = 6514
const pieceBytes = 64 * 1024
/** RFC 5424 section 6.2.1. */
const severities = { warning: 4, informational: 6 }
/** Reserved for documentation; a product needs a number of its own where it has one (RFC 5424 section 7.2.2). */
const enterprise = 32_473

/** RFC 5424 section 6.3.3: `"`, `\` and `]` are escaped. */
const parameter = (value: string): string => value.replaceAll(/["\\\]]/g, '\\$&')

/** RFC 5424 section 6.2: header fields are visible ASCII. */
const visible = (text: string, longest: number): string =>
  text.replaceAll(/[^\x21-\x7e]/g, '_').slice(0, longest) || '-'

interface Header {
  facility: number
  appName: string
  host: string
}

export function syslogMessage({ id, at, type, verdict, json }: Item, { facility, appName, host }: Header): string {
  const isUsual = verdict === 'allow' || verdict === ''
  const priority = facility * 8 + (isUsual ? severities.informational : severities.warning)
  const data = `[event@${enterprise} id="${parameter(id)}" type="${parameter(type)}" verdict="${parameter(verdict)}"][origin software="gatehouse" swVersion="${version}"]`
  const time = new Date(at).toISOString()
  return `<${priority}>1 ${time} ${host} ${appName} ${process.pid} ${visible(type, 32)} ${data} ${json}`
}

const framed = (message: string): string => `${Buffer.byteLength(message)} ${message}`

export const syslog: SinkKind = {
  formats: ['events', 'ocsf'],
  proves: false,
  schemes: { tls: 'tls', plain: 'tcp' },
  own: 'syslog',
  needs: [],
  most: { items: 5000, bytes: 8_000_000 },
  restMilliseconds: () => 1000,
  open(sink) {
    const { facility = 13, app_name: appName = 'gatehouse' } = sink.config.syslog ?? {}
    const header = { facility, appName, host: visible(hostname(), 255) }
    return {
      async send({ items }, signal) {
        const socket = await connected(sink, signal)
        try {
          await writeAll(socket, items, header)
        } catch (error) {
          throw new ReceiverFailed(`The receiver: ${callFailure(error, 'it took too long')}`, { cause: error })
        } finally {
          socket.destroy()
        }
      },
      close: async () => undefined,
    }
  },
}

/** A connection on which nothing was sent yet; it fails when the signal fires or time is up. */
async function connected({ url, config, credentials }: Sink, signal: AbortSignal): Promise<Socket> {
  const { hostname: host, port, protocol } = new URL(url)
  const to = { host: host.replace(/^\[|\]$/g, ''), port: port === '' ? defaultPort : Number(port) }
  const { ca_certificate: ca } = config
  const { client_certificate: cert, client_key: key } = credentials
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  const socket: Socket =
    protocol === 'tcp:'
      ? connectPlain(to, () => resolve(socket))
      : connectTls(
          {
            ...to,
            ...(/^[\d.]+$|:/.test(to.host) ? {} : { servername: to.host }),
            ...(ca === undefined ? {} : { ca }),
            ...(cert === undefined ? {} : { cert }),
            ...(key === undefined ? {} : { key }),
          },
          () => resolve(socket),
        )
  socket.on('error', reject)
  const end = () => socket.destroy(new DOMException('The receiver took too long', 'TimeoutError'))
  socket.setTimeout(timeoutMilliseconds, end)
  signal.addEventListener('abort', end, { once: true })
  socket.once('close', () => signal.removeEventListener('abort', end))
  try {
    return await promise
  } catch (error) {
    socket.destroy()
    throw new ReceiverFailed(`The receiver: ${callFailure(error, 'it did not answer in time')}`, { cause: error })
  }
}

/** Resolves when the receiver has closed its side behind all messages. */
async function writeAll(socket: Socket, items: readonly Item[], header: Header): Promise<void> {
  const { promise: ended, resolve, reject } = Promise.withResolvers<void>()
  let isAnswered = false
  socket.on('error', reject)
  socket.on('end', () => {
    isAnswered = true
  })
  socket.on('close', () => (isAnswered ? resolve() : reject(new Error('The connection broke off'))))
  // What the receiver says is not looked at, but read, because its end stands behind it.
  socket.resume()
  // Awaited at the end; writing may fail first.
  ended.catch(() => undefined)
  let piece = ''
  const write = async () => {
    const isRoom = socket.write(piece)
    piece = ''
    const drained = isRoom ? yieldToEventLoop() : new Promise((room) => socket.once('drain', room))
    await Promise.race([drained, ended])
  }
  for (const item of items) {
    piece += framed(syslogMessage(item, header))
    if (piece.length >= pieceBytes) await write()
  }
  if (piece !== '') await write()
  socket.end()
  await ended
}
