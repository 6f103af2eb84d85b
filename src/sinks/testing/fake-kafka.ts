/**
 * A Kafka broker for tests, written from the protocol guide (kafka.apache.org/protocol): ApiVersions, Metadata 1 and
 * Produce 3 with record batches (magic 2, gzip), for one topic of two partitions. It keeps what it acknowledges.
 */
import { createServer, type Server, type Socket } from 'node:net'
import { gunzipSync } from 'node:zlib'

interface Message {
  partition: number
  key: string
  value: string
  headers: Record<string, string>
}

const produce = 0
const metadata = 3
const apiVersions = 18
const unknownTopic = 3

/** Reads the protocol's types one after another. */
class Reader {
  #at = 0
  readonly #bytes: Buffer

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  #take(count: number): Buffer {
    this.#at += count
    if (this.#at > this.#bytes.length) throw new Error('The message is cut off')
    return this.#bytes.subarray(this.#at - count, this.#at)
  }

  int8 = (): number => this.#take(1).readInt8()
  int16 = (): number => this.#take(2).readInt16BE()
  int32 = (): number => this.#take(4).readInt32BE()
  skip = (count: number): Buffer => this.#take(count)
  bytes = (): Buffer => this.#take(this.int32())
  rest = (): Buffer => this.#bytes.subarray(this.#at)

  text(): string | null {
    const length = this.int16()
    return length < 0 ? null : this.#take(length).toString()
  }

  list<Item>(read: () => Item): Item[] {
    return Array.from({ length: Math.max(0, this.int32()) }, read)
  }

  /** A zigzag varint. */
  varint(): number {
    let [value, shift] = [0n, 0n]
    for (;;) {
      const byte = BigInt(this.#take(1).readUInt8())
      value |= (byte & 127n) << shift
      if (byte < 128n) return Number((value >> 1n) ^ -(value & 1n))
      shift += 7n
    }
  }

  varText(): string {
    const length = this.varint()
    return length < 0 ? '' : this.#take(length).toString()
  }
}

const int = (bits: 8 | 16 | 32 | 64, value: number): Buffer => {
  const bytes = Buffer.alloc(bits / 8)
  if (bits === 64) bytes.writeBigInt64BE(BigInt(value))
  else bytes.writeIntBE(value, 0, bits / 8)
  return bytes
}
const text = (value: string): Buffer => Buffer.concat([int(16, value.length), Buffer.from(value)])
const list = (items: readonly Buffer[]): Buffer => Buffer.concat([int(32, items.length), ...items])

export class FakeKafka {
  readonly messages: Message[] = []
  /** Breaks the connection instead of the next acknowledgements; what was sent is kept. */
  breaksBeforeAnswers = 0
  readonly #server: Server
  readonly #topic: string
  readonly #sockets = new Set<Socket>()
  #port = 0

  private constructor(topic: string) {
    this.#topic = topic
    this.#server = createServer((socket) => this.#serve(socket))
  }

  static async start(topic: string): Promise<FakeKafka> {
    const broker = new FakeKafka(topic)
    await new Promise<void>((listening) => broker.#server.listen(0, '127.0.0.1', listening))
    const address = broker.#server.address()
    broker.#port = typeof address === 'object' && address !== null ? address.port : 0
    return broker
  }

  get url(): string {
    return `kafka://127.0.0.1:${this.#port}`
  }

  stop(): void {
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket)
    let bytes = Buffer.alloc(0)
    socket.on('error', () => undefined)
    socket.on('data', (piece: Buffer) => {
      bytes = Buffer.concat([bytes, piece])
      while (bytes.length >= 4 && bytes.length >= 4 + bytes.readInt32BE()) {
        const end = 4 + bytes.readInt32BE()
        const answer = this.#answer(new Reader(bytes.subarray(4, end)))
        bytes = bytes.subarray(end)
        if (answer === null) return socket.destroy()
        socket.write(Buffer.concat([int(32, answer.length), answer]))
      }
    })
  }

  #answer(request: Reader): Buffer | null {
    const [key, version, correlation] = [request.int16(), request.int16(), request.int32()]
    request.text()
    if (key === apiVersions) return Buffer.concat([int(32, correlation), this.#versions(version)])
    if (key === metadata) return Buffer.concat([int(32, correlation), this.#metadata(request)])
    if (key !== produce || version !== 3) throw new Error(`The broker has no call ${key} in version ${version}`)
    const answer = this.#produce(request)
    if (this.breaksBeforeAnswers === 0) return Buffer.concat([int(32, correlation), answer])
    this.breaksBeforeAnswers -= 1
    return null
  }

  #versions(version: number): Buffer {
    const known = [
      [produce, 3, 3],
      [metadata, 1, 1],
      [apiVersions, 0, 2],
    ]
    const rows = list(known.map((row) => Buffer.concat(row.map((value) => int(16, value)))))
    return Buffer.concat([int(16, 0), rows, ...(version > 0 ? [int(32, 0)] : [])])
  }

  #metadata(request: Reader): Buffer {
    const asked = request.list(() => request.text() ?? '')
    const broker = Buffer.concat([int(32, 1), text('127.0.0.1'), int(32, this.#port), int(16, -1)])
    const partition = (id: number) =>
      Buffer.concat([int(16, 0), int(32, id), int(32, 1), list([int(32, 1)]), list([int(32, 1)])])
    const topics = asked.map((name) => {
      const isKnown = name === this.#topic
      return Buffer.concat([
        ...[int(16, isKnown ? 0 : unknownTopic), text(name), int(8, 0)],
        list(isKnown ? [partition(0), partition(1)] : []),
      ])
    })
    return Buffer.concat([list([broker]), int(32, 1), list(topics)])
  }

  #produce(request: Reader): Buffer {
    request.text()
    if (request.int16() !== -1) throw new Error('A sink waits for all replicas')
    request.int32()
    const topics = request.list(() => {
      const name = request.text() ?? ''
      const partitions = request.list(() => {
        const id = request.int32()
        this.#keep(id, new Reader(request.bytes()))
        return Buffer.concat([int(32, id), int(16, 0), int(64, 0), int(64, -1)])
      })
      return Buffer.concat([text(name), list(partitions)])
    })
    return Buffer.concat([list(topics), int(32, 0)])
  }

  /** Reads a record batch. */
  #keep(partition: number, batch: Reader): void {
    batch.skip(16)
    if (batch.int8() !== 2) throw new Error('This is no record batch of magic 2')
    batch.skip(4)
    const isPacked = (batch.int16() & 7) === 1
    batch.skip(34)
    const count = batch.int32()
    const records = isPacked ? new Reader(gunzipSync(batch.rest())) : batch
    for (let read = 0; read < count; read += 1) {
      records.varint()
      records.int8()
      records.varint()
      records.varint()
      const [key, value] = [records.varText(), records.varText()]
      const headers = Array.from({ length: records.varint() }, () => [records.varText(), records.varText()] as const)
      this.messages.push({ partition, key, value, headers: Object.fromEntries(headers) })
    }
  }
}
