/**
 * Attribution of an OTLP export in protobuf (opentelemetry/proto: all three signals have the same outer messages).
 *
 *   Export…Request { repeated Resource… = 1 }, Resource… { Resource = 1; … }, Resource { repeated KeyValue = 1; … }
 *
 * Only these are read; everything else is copied as it came. A message may hold its Resource in several parts (Protocol
 * Buffers, Encoding, "Last One Wins"). They become one: some readers do not merge them.
 */
import { type Attribution, checkResources, malformed, ownPrefix } from './attribution.ts'

/** Group fields (3, 4) are of no message of OTLP. */
const wire = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const

interface Field {
  number: number
  /** Of the whole field, its tag included. */
  from: number
  to: number
  /** Where its content begins; null where it holds no bytes. */
  content: number | null
}

export function attributedProtobuf(bytes: Uint8Array, attribution: Attribution): Uint8Array {
  const added = concatenated(attribution.map(([name, value]) => lengthDelimited(1, keyValue(name, value))))
  const pieces: Uint8Array[] = []
  let resources = 0
  for (const field of fieldsOf(bytes)) {
    if (field.number !== 1 || field.content === null) pieces.push(bytes.subarray(field.from, field.to))
    else {
      checkResources(++resources)
      pieces.push(lengthDelimited(1, withAttributes(bytes.subarray(field.content, field.to), added)))
    }
  }
  return concatenated(pieces)
}

function withAttributes(bytes: Uint8Array, added: Uint8Array): Uint8Array {
  const resource: Uint8Array[] = []
  const others: Uint8Array[] = []
  for (const field of fieldsOf(bytes)) {
    if (field.number === 1 && field.content !== null) resource.push(cleaned(bytes.subarray(field.content, field.to)))
    else others.push(bytes.subarray(field.from, field.to))
  }
  return concatenated([lengthDelimited(1, concatenated([...resource, added])), ...others])
}

/** A Resource without attributes under the gateway's names. */
function cleaned(bytes: Uint8Array): Uint8Array {
  const kept = [...fieldsOf(bytes)].filter(
    ({ number, content, to }) => number !== 1 || content === null || !isOwn(bytes.subarray(content, to)),
  )
  return concatenated(kept.map(({ from, to }) => bytes.subarray(from, to)))
}

/** Whether a KeyValue has a name of the gateway's; of several keys, a reader takes the last. */
const isOwn = (bytes: Uint8Array): boolean =>
  [...fieldsOf(bytes)].some(
    ({ number, content, to }) =>
      number === 1 && content !== null && text.decode(bytes.subarray(content, to)).startsWith(ownPrefix),
  )

const text = new TextDecoder()

function* fieldsOf(bytes: Uint8Array): Generator<Field> {
  let at = 0
  while (at < bytes.length) {
    const from = at
    const tag = varintAt(bytes, at)
    const number = Math.floor(tag.value / 8)
    at = tag.end
    let content: number | null = null
    const type = tag.value % 8
    if (type === wire.varint) at = varintAt(bytes, at).end
    else if (type === wire.fixed64) at += 8
    else if (type === wire.fixed32) at += 4
    else if (type === wire.bytes) {
      const length = varintAt(bytes, at)
      content = length.end
      at = length.end + length.value
    } else throw malformed()
    if (at > bytes.length || number === 0) throw malformed()
    yield { number, from, to: at, content }
  }
}

const longestVarint = 10

/** A varint at a place, and the place after it. One beyond 2^53 is not exact: no length is, and other values are copied. */
function varintAt(bytes: Uint8Array, from: number): { value: number; end: number } {
  let value = 0
  for (let index = 0; index < longestVarint; index += 1) {
    const byte = bytes[from + index]
    if (byte === undefined) throw malformed()
    value += (byte % 128) * 2 ** (7 * index)
    if (byte < 128) return { value, end: from + index + 1 }
  }
  throw malformed()
}

function varint(value: number): number[] {
  const bytes: number[] = []
  let left = value
  while (left > 127) {
    bytes.push((left % 128) + 128)
    left = Math.floor(left / 128)
  }
  return [...bytes, left]
}

const lengthDelimited = (number: number, content: Uint8Array): Uint8Array =>
  concatenated([new Uint8Array([...varint(number * 8 + wire.bytes), ...varint(content.length)]), content])

/** KeyValue { key = 1; AnyValue value = 2 }, AnyValue { string_value = 1 }. */
const keyValue = (name: string, value: string): Uint8Array =>
  concatenated([lengthDelimited(1, Buffer.from(name)), lengthDelimited(2, lengthDelimited(1, Buffer.from(value)))])

const concatenated = (pieces: readonly Uint8Array[]): Uint8Array => Buffer.concat(pieces)
