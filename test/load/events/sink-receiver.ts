/**
 * Receivers of every kind of sink, as a process of its own: `bun sink-receiver.ts` prints its addresses as JSON. It keeps
 * no message, only a hash of each id: so `GET /counted` says whether all came, and how many came twice.
 */
import { createServer } from 'node:tls'
import { certificate, key } from '../../../src/lib/testing/certificate.ts'
import { FakeKafka } from '../../../src/sinks/testing/fake-kafka.ts'

export interface Addresses {
  http: string
  syslog: string
  kafka: string
}

/** What was received since the last question. */
export interface Counted {
  messages: number
  distinct: number
  /** The hashes of all ids together, in whatever order they came. */
  digest: string
}

/** A set of ids, of which two can be compared whatever their order. */
export class Ids {
  messages = 0
  readonly #hashes = new Set<bigint>()

  add(id: string): void {
    this.messages += 1
    this.#hashes.add(BigInt(Bun.hash(id)))
  }

  counted(): Counted {
    let digest = 0n
    for (const hash of this.#hashes) digest ^= hash
    return { messages: this.messages, distinct: this.#hashes.size, digest: digest.toString(16) }
  }
}

export const topic = 'gatehouse'
const megabyte = 1024 * 1024
const id = '([0-9a-f-]{36})'

/** Where the id of a message stands, by the first part of the path; of other paths, objects of S3 hold lines. */
const lines = new RegExp(`^\\{"event_id":"${id}"`, 'gm')
const patterns: Readonly<Record<string, RegExp>> = {
  lines,
  ocsf: new RegExp(`"version":"1.5.0","uid":"${id}"`, 'g'),
  splunk: new RegExp(`"event":\\{"event_id":"${id}"`, 'g'),
  datadog: new RegExp(`"message":"\\{\\\\"event_id\\\\":\\\\"${id}`, 'g'),
  otlp: new RegExp(`\\{"key":"event.id","value":\\{"stringValue":"${id}"`, 'g'),
}
const syslogId = new RegExp(`\\[event@32473 id="${id}"`, 'g')
/** Longer than what stands between the length of a message and its id. */
const syslogHeader = 1024

if (import.meta.main) await receive()

async function receive(): Promise<void> {
  let ids = new Ids()
  const addAll = (text: string, pattern: RegExp): void => {
    for (const match of text.matchAll(pattern)) ids.add(match[1] ?? '')
  }
  const broker = await FakeKafka.start(topic)
  const takeMessages = (): void => {
    for (const { headers } of broker.messages.splice(0)) ids.add(headers.event_id ?? '')
  }
  setInterval(takeMessages, 20)
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    maxRequestBodySize: 256 * megabyte,
    async fetch(request) {
      const { pathname } = new URL(request.url)
      if (pathname === '/counted') {
        takeMessages()
        const counted = ids.counted()
        ids = new Ids()
        return Response.json(counted)
      }
      const bytes = new Uint8Array(await request.arrayBuffer())
      const pattern = patterns[pathname.split('/')[1] ?? '']
      if (pattern !== undefined) addAll(Buffer.from(Bun.gunzipSync(bytes)).toString(), pattern)
      else if (pathname.endsWith('.zst')) addAll(Buffer.from(Bun.zstdDecompressSync(bytes)).toString(), lines)
      return request.headers.get('content-type') === 'application/json' ? Response.json({}) : new Response()
    },
  })
  const syslog = createServer({ key, cert: certificate, allowHalfOpen: true }, (socket) => {
    let rest = ''
    socket.on('data', (piece: Buffer) => {
      const text = rest + piece.toString('latin1')
      const last = Math.max(0, text.length - syslogHeader)
      let read = 0
      for (const match of text.matchAll(syslogId)) {
        ids.add(match[1] ?? '')
        read = match.index + match[0].length
      }
      rest = text.slice(Math.max(read, last))
    })
    socket.on('end', () => socket.end())
    socket.on('error', () => undefined)
  })
  await new Promise<void>((listening) => syslog.listen(0, '127.0.0.1', listening))
  const address = syslog.address()
  const port = typeof address === 'object' ? address?.port : 0
  const addresses: Addresses = {
    http: `http://127.0.0.1:${server.port}`,
    syslog: `tls://localhost:${port}`,
    kafka: broker.url,
  }
  console.log(JSON.stringify(addresses))
}
