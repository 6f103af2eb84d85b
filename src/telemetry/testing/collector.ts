/** A collector for tests: takes OTLP over HTTP in protobuf and reads what it is sent (opentelemetry/proto/trace/v1). */

export interface CollectedSpan {
  name: string
  kind: 'server' | 'client'
  traceId: string
  spanId: string
  parentSpanId: string
  traceState: string
  attributes: Record<string, unknown>
  /** `error` or empty, with its message. */
  status: string
}

export interface TestCollector {
  readonly url: string
  readonly spans: CollectedSpan[]
  /** What it answers with. */
  answer: () => Response
  stop(): Promise<void>
}

export function startTestCollector(): TestCollector {
  const spans: CollectedSpan[] = []
  const server = Bun.serve({
    port: 0,
    async fetch(request) {
      for (const ofResource of within(await request.bytes(), 1)) {
        for (const ofScope of within(ofResource, 2)) spans.push(...within(ofScope, 2).map(spanOf))
      }
      return collector.answer()
    },
  })
  const collector: TestCollector = {
    url: `http://127.0.0.1:${server.port}`,
    spans,
    answer: () => accepted(new Uint8Array(0)),
    stop: () => server.stop(true),
  }
  return collector
}

const accepted = (body: Uint8Array): Response =>
  new Response(body, { headers: { 'content-type': 'application/x-protobuf' } })

/** The answer that so many spans were not taken, fewer than 128. */
export function partialSuccess(rejected: number, message: string): Response {
  const text = Buffer.from(message)
  const partial = [0x08, rejected, 0x12, text.length, ...text]
  return accepted(new Uint8Array([0x0a, partial.length, ...partial]))
}

type Field = { number: number; value: bigint | Buffer }

/** The fields of a message, in order (Protocol Buffers, Encoding). */
function fieldsOf(bytes: Uint8Array): Field[] {
  const buffer = Buffer.from(bytes)
  const fields: Field[] = []
  let at = 0
  const varint = (): bigint => {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = buffer.readUInt8(at++)
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
  }
  const take = (length: number): Buffer => {
    at += length
    return buffer.subarray(at - length, at)
  }
  while (at < buffer.length) {
    const tag = Number(varint())
    const wire = tag & 7
    const value = wire === 0 ? varint() : take(wire === 1 ? 8 : wire === 5 ? 4 : Number(varint()))
    fields.push({ number: tag >> 3, value })
  }
  return fields
}

const within = (message: Uint8Array, number: number): Buffer[] =>
  fieldsOf(message).flatMap((field) => (field.number === number && Buffer.isBuffer(field.value) ? [field.value] : []))

function spanOf(message: Buffer): CollectedSpan {
  const fields = fieldsOf(message)
  const bytes = (number: number) => within(message, number)[0] ?? Buffer.alloc(0)
  return {
    name: bytes(5).toString(),
    kind: fields.find(({ number }) => number === 6)?.value === 2n ? 'server' : 'client',
    traceId: bytes(1).toString('hex'),
    spanId: bytes(2).toString('hex'),
    parentSpanId: bytes(4).toString('hex'),
    traceState: bytes(3).toString(),
    attributes: Object.fromEntries(
      within(message, 9).map((pair) => [String(within(pair, 1)[0]), anyOf(within(pair, 2)[0] ?? Buffer.alloc(0))]),
    ),
    status: String(within(bytes(15), 2)[0] ?? ''),
  }
}

/** An AnyValue: text, truth, whole number, number, list. */
function anyOf(message: Buffer): unknown {
  const [field] = fieldsOf(message)
  if (field === undefined) return null
  const { number, value } = field
  if (!Buffer.isBuffer(value)) return number === 2 ? value === 1n : Number(BigInt.asIntN(64, value))
  if (number === 4) return value.readDoubleLE()
  return number === 5 ? within(value, 1).map(anyOf) : value.toString()
}
