/**
 * The identifiers of a segment as sorted 32-bit hashes (MurmurHash3 x86 32, as `Bun.hash.murmur32v3`), after a CRC-32 of
 * them. A look-up reads the hashes of a segment and opens the segment only where one is equal. Against a Bloom filter
 * this takes 8 bytes a record instead of 5; in return two lists are merged without reading a record, a removed
 * identifier leaves nothing behind, and a wrong match is rare (one in 500 000 for a segment of 4 096 records).
 */
const bytesOfHash = 4

export const hashOfId = (id: string): number => Bun.hash.murmur32v3(id) >>> 0

/** The hashes of several segments as those of one. */
export function mergeHashes(lists: readonly Uint32Array[]): Uint32Array {
  const all = new Uint32Array(lists.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const list of lists) {
    all.set(list, at)
    at += list.length
  }
  return sortedHashes(all)
}

/** Sorts hashes in place, each once. */
export function sortedHashes(hashes: Uint32Array): Uint32Array {
  hashes.sort()
  let kept = 0
  for (const hash of hashes) {
    if (kept > 0 && hashes[kept - 1] === hash) continue
    hashes[kept] = hash
    kept += 1
  }
  return hashes.subarray(0, kept)
}

/** As they are stored: little-endian, after their checksum. */
export function bytesOfHashes(hashes: Uint32Array): Uint8Array {
  const bytes = Buffer.allocUnsafe((1 + hashes.length) * bytesOfHash)
  for (const [index, hash] of hashes.entries()) bytes.writeUInt32LE(hash, (1 + index) * bytesOfHash)
  bytes.writeUInt32LE(Bun.hash.crc32(bytes.subarray(bytesOfHash)) >>> 0, 0)
  return bytes
}

const isSound = (bytes: Buffer): boolean =>
  bytes.length >= bytesOfHash &&
  bytes.length % bytesOfHash === 0 &&
  bytes.readUInt32LE(0) === Bun.hash.crc32(bytes.subarray(bytesOfHash)) >>> 0

/** Null where the bytes are not what was stored. */
export function hashesOfBytes(stored: Uint8Array): Uint32Array | null {
  const bytes = Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength)
  if (!isSound(bytes)) return null
  const hashes = new Uint32Array(bytes.length / bytesOfHash - 1)
  for (let index = 0; index < hashes.length; index += 1) hashes[index] = bytes.readUInt32LE((1 + index) * bytesOfHash)
  return hashes
}

/** Whether stored hashes hold all of these; true for damaged ones, so that their segment is opened. By bisection. */
export function mayHold(stored: Uint8Array, wanted: readonly number[]): boolean {
  const bytes = Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength)
  return wanted.every((hash) => holds(bytes, hash)) || !isSound(bytes)
}

function holds(bytes: Buffer, hash: number): boolean {
  let low = 1
  let high = Math.floor(bytes.length / bytesOfHash)
  while (low < high) {
    const middle = (low + high) >>> 1
    const found = bytes.readUInt32LE(middle * bytesOfHash)
    if (found === hash) return true
    if (found < hash) low = middle + 1
    else high = middle
  }
  return false
}
