/**
 * Reads the log id from a primary's answer to a replica's handshake. It is field 3 of libSQL's `HelloResponse`
 * (replication_log.proto), in the one data frame of a gRPC-Web body. A primary that was restored, or rebuilt its log
 * after a crash, has another log. libSQL would then replace the replica's file in place while others read it.
 */
const logField = 3
const lengthDelimited = 2
const frameHead = 5

/** The log's UUID; null if the body has none, such as the body of an error. */
export function logOfHandshake(body: Uint8Array): string | null {
  const buffer = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  if (buffer.length < frameHead || buffer[0] !== 0) return null
  const message = buffer.subarray(frameHead, frameHead + buffer.readUInt32BE(1))
  for (let at = 0; at < message.length; ) {
    const tag = readVarint(message, at)
    const value = readVarint(message, tag.end)
    const kind = tag.value & 7
    if (kind !== lengthDelimited && kind !== 0) return null
    const end = kind === lengthDelimited ? value.end + value.value : value.end
    if (tag.value >> 3 === logField && kind === lengthDelimited) {
      const text = message.subarray(value.end, end).toString('latin1')
      return /^[0-9a-f-]{36}$/.test(text) ? text : null
    }
    at = end
  }
  return null
}

/** A number below 2^53 in Protocol Buffers' varint encoding; larger ones are inexact. */
function readVarint(bytes: Buffer, from: number): { value: number; end: number } {
  let value = 0
  let scale = 1
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0
    value += (byte & 0x7f) * scale
    if (byte < 0x80) return { value, end: at + 1 }
    scale *= 128
  }
  return { value, end: bytes.length }
}
